// @ts-check
/** What changes would do: a form, and before and after side by side. Nothing is changed. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { act, outcome as cameOfIt } from "./acting.js";
import { count, nodeLink } from "./format.js";
import { redraw } from "./redraw.js";
import { can, said, store, tryOut } from "./store.js";
import { byNumber } from "./tiles.js";

/**
 * @typedef {{pod: string, node: string}} Start
 * @typedef {{pod: string, fromNode: string, successor: string, toNode: string}} Move
 * @typedef {{pod: string, reason: string}} Waiting
 * @typedef {{pod: string, node: string}} Loss
 * @typedef {{name: string, before: Record<string, number> | null, after: Record<string, number> | null}} UseChange
 * @typedef {{starts: Start[], moves: Move[], lost: Loss[], newlyPending: Waiting[],
 *   stillPending: Waiting[], nodes: UseChange[]}} Course
 */

const CHANGES = {
  pods: "Create pods",
  nodes: "Add nodes",
  drain: "Drain a node",
  removeNode: "Remove a node",
  cordon: "Cordon a node",
};

let kind = "pods";
let busy = false;
let trouble = "";
/** @type {{course: Course, worse: string[]} | null} */
let found = null;
/** @type {{act: string, body: object} | null} the act that does what was tried, in a sandbox */
let deed = null;

export function whatIfView() {
  const many = kind === "pods" || kind === "nodes";
  return html`
    <form class="act" aria-label="What if" @submit=${submit}>
      <label
        >Change
        <select name="kind" @change=${chooseKind}>
          ${Object.entries(CHANGES).map(([each, title]) => html`<option value=${each} ?selected=${each === kind}>${title}</option>`)}
        </select>
      </label>
      ${
        many
          ? html`<label>How many <input name="count" type="number" min="1" max="100" value="3" required /></label>
              <label>cpu of each <input name="cpu" value=${kind === "pods" ? "4" : "8"} size="6" required /></label>
              <label>memory of each <input name="memory" value=${kind === "pods" ? "8Gi" : "32Gi"} size="6" required /></label>`
          : html`<label
              >Node
              <select name="node">
                ${[...store.nodes.keys()].sort(byNumber).map((each) => html`<option>${each}</option>`)}
              </select>
            </label>`
      }
      <button ?disabled=${busy}>Try it</button>
      <span class="quiet" role="status">${busy ? "trying ..." : "nothing is changed"}</span>
    </form>
    ${trouble ? html`<p class="empty" role="status">${trouble}</p>` : nothing} ${found ? outcome(found) : nothing} ${found ? carryingOut() : nothing}
  `;
}

/** What was tried can be done, where the page of a sandbox has an act for it. */
function carryingOut() {
  const wanted = deed;
  if (!wanted || !can(wanted.act)) return nothing;
  return html`<p>
    <button @click=${() => act(wanted.act, wanted.body)}>Carry it out</button> ${cameOfIt(wanted.act)}
  </p>`;
}

/** @param {Event} event */
function chooseKind(event) {
  if (event.target instanceof HTMLSelectElement) kind = event.target.value;
  redraw();
}

/** @param {SubmitEvent} event */
async function submit(event) {
  event.preventDefault();
  if (!(event.target instanceof HTMLFormElement)) return;
  const given = Object.fromEntries(new FormData(event.target));
  busy = true;
  trouble = "";
  redraw();
  deed = deedOf(given);
  try {
    found = await tryOut("what-if", { changes: changesOf(given) });
  } catch (error) {
    trouble = said(error);
    found = null;
  }
  busy = false;
  redraw();
}

/** @param {Record<string, FormDataEntryValue>} given */
function changesOf(given) {
  const amounts = { cpu: String(given.cpu), memory: String(given.memory) };
  const numbers = Array.from({ length: Number(given.count ?? 0) }, (_, index) => index);
  if (given.kind === "pods") return numbers.map((each) => ({ change: "apply", manifest: podOf(each, amounts) }));
  if (given.kind === "nodes") {
    return numbers.map((each) => ({ change: "addNode", manifest: nodeOf(each, amounts), zoneTurn: each }));
  }
  return [{ change: given.kind, name: given.node }];
}

/** @param {Record<string, FormDataEntryValue>} given */
function deedOf(given) {
  const many = { count: Number(given.count ?? 0), cpu: given.cpu, memory: given.memory };
  if (given.kind === "pods") return { act: "create-pods", body: { ...many, name: "what-if" } };
  if (given.kind === "nodes") return { act: "add-nodes", body: many };
  if (given.kind === "cordon") return { act: "cordon", body: { node: given.node, on: true } };
  return null;
}

/** @param {number} number @param {Record<string, string>} requests */
function podOf(number, requests) {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: `what-if-${number + 1}`, namespace: "default" },
    spec: { containers: [{ name: "main", image: "registry.k8s.io/pause:3.10", resources: { requests } }] },
  };
}

/** @param {number} number @param {Record<string, string>} amounts */
function nodeOf(number, amounts) {
  const has = { ...amounts, pods: "110" };
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: `what-if-${number + 1}` },
    status: { allocatable: has, capacity: has },
  };
}

/** @param {{course: Course, worse: string[]}} told */
function outcome({ course, worse }) {
  const rows = [
    ...course.starts.map((each) => [each.pod, "", each.node, "starts"]),
    ...course.moves.map((each) => [each.pod, each.fromNode, each.toNode, `moves, as ${each.successor}`]),
    ...course.lost.map((each) => [each.pod, each.node, "", "is lost"]),
    ...course.newlyPending.map((each) => [each.pod, "", "", each.reason]),
    ...course.stillPending.map((each) => [each.pod, "", "", `still waits: ${each.reason}`]),
  ];
  return html`
    <h2>What would happen</h2>
    ${worse.map((each) => html`<p class="failed">${each}</p>`)}
    <p class="sum" id="what-if-sum">
      ${count(course.starts.length, "pod")} would start, ${course.moves.length} move, ${course.lost.length} be lost,
      ${course.newlyPending.length} wait.
    </p>
    ${
      rows.length
        ? html`<div class="scroll" tabindex="0" role="region" aria-label="Pods before and after">
            <table>
              <caption>
                Before and after
              </caption>
              <thead>
                <tr>${["Pod", "Before", "After", "What"].map((each) => html`<th scope="col">${each}</th>`)}</tr>
              </thead>
              <tbody>
                ${rows.slice(0, 200).map(
                  ([pod, before, after, what]) => html`<tr>
                    <th scope="row">${pod}</th>
                    <td>${before}</td>
                    <td>${store.nodes.has(after) ? html`<a href=${nodeLink(after)}>${after}</a>` : after}</td>
                    <td class="reason">${what}</td>
                  </tr>`,
                )}
              </tbody>
            </table>
          </div>`
        : html`<p class="empty">No pod would start, move or wait.</p>`
    }
  `;
}
