// @ts-check
/** What changes would do: a form, and before and after side by side. Nothing is changed. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { act, outcome as cameOfIt } from "./acting.js";
import { bar } from "./bar.js";
import { podsTable } from "./course.js";
import { amountOf, count } from "./format.js";
import { redraw } from "./redraw.js";
import { choice, choose } from "./route.js";
import { can, manifestsOf, said, store, tryOut } from "./store.js";
import { byNumber } from "./tiles.js";

/**
 * @typedef {{flag: string, pods: string[]}} FlagNeed
 * @typedef {{pods: number, used: Record<string, number>, allocatable: Record<string, number>}} Use
 *   cpu in cores, memory in bytes
 * @typedef {{name: string, before: Use | null, after: Use | null}} UseChange
 * @typedef {import("./course.js").PodsOfCourse & {nodes: UseChange[], drainFlags: FlagNeed[],
 *   orderMatters: boolean}} Course
 */

const CHANGES = {
  pods: "Create pods",
  nodes: "Add nodes",
  drain: "Drain a node",
  removeNode: "Remove a node",
  cordon: "Cordon a node",
  manifests: "Create or replace objects",
};
const GPU = "nvidia.com/gpu";

const LISTED = 200;
const NAMED = 5;

let busy = false;
let trouble = "";
/** @type {{course: Course, worse: string[]} | null} */
let found = null;
/** @type {{act: string, body: object} | null} the act that does what was tried, in a sandbox */
let deed = null;

export function whatIfView() {
  const kind = choice("change", "pods");
  const many = kind === "pods" || kind === "nodes";
  return html`
    <form class="act" aria-label="What if" @submit=${submit}>
      <label
        >Change
        <select name="kind" @change=${chooseKind}>
          ${Object.entries(CHANGES).map(([each, title]) => html`<option value=${each} ?selected=${each === kind}>${title}</option>`)}
        </select>
      </label>
      ${many ? amounts(kind) : kind === "manifests" ? manifestBox() : nodeChoice()}
      <button ?disabled=${busy}>Try it</button>
      <span class="quiet" role="status">${busy ? "trying ..." : "nothing is changed"}</span>
    </form>
    ${trouble ? html`<p class="empty" role="status">${trouble}</p>` : nothing} ${found ? outcome(found) : nothing} ${found ? carryingOut() : nothing}
  `;
}

/** @param {string} kind pods or nodes */
function amounts(kind) {
  return html`<label>How many <input name="count" type="number" min="1" max="100" value=${choice("count", "3")} required /></label>
    <label>cpu of each <input name="cpu" value=${choice("cpu", kind === "pods" ? "4" : "8")} size="6" required /></label>
    <label>memory of each <input name="memory" value=${choice("memory", kind === "pods" ? "8Gi" : "32Gi")} size="6" required /></label>
    <label>GPUs of each <input name="gpus" type="number" min="0" max="64" value=${choice("gpus", "0")} required /></label>`;
}

function nodeChoice() {
  return html`<label
    >Node
    <select name="node">
      ${[...store.nodes.keys()].sort(byNumber).map((each) => html`<option ?selected=${each === choice("node", "")}>${each}</option>`)}
    </select>
  </label>`;
}

function manifestBox() {
  return html`<label class="wide"
    >YAML or JSON, as kubectl apply takes it
    <textarea name="text" rows="12" spellcheck="false" required placeholder="kind: Deployment ..."></textarea>
  </label>`;
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
  if (!(event.target instanceof HTMLSelectElement)) return;
  choose({ change: event.target.value, count: "", cpu: "", memory: "", gpus: "", node: "" });
}

/** @param {SubmitEvent} event */
async function submit(event) {
  event.preventDefault();
  if (!(event.target instanceof HTMLFormElement)) return;
  const given = Object.fromEntries(new FormData(event.target));
  // A manifest is too long for an address.
  const { kind, text, ...choices } = Object.fromEntries(
    Object.entries(given).map(([name, value]) => [name, String(value)]),
  );
  choose({ ...choices, gpus: choices.gpus === "0" ? "" : choices.gpus, change: kind });
  busy = true;
  trouble = "";
  redraw();
  deed = deedOf(given);
  try {
    const changes =
      kind === "manifests"
        ? (await manifestsOf(text)).map((manifest) => ({ change: "apply", manifest }))
        : changesOf(given);
    found = await tryOut("what-if", { changes });
  } catch (error) {
    trouble = said(error);
    found = null;
  }
  busy = false;
  redraw();
}

/** @param {Record<string, FormDataEntryValue>} given */
function changesOf(given) {
  const gpus = Number(given.gpus ?? 0);
  const each = { cpu: String(given.cpu), memory: String(given.memory), ...(gpus ? { [GPU]: String(gpus) } : {}) };
  const numbers = Array.from({ length: Number(given.count ?? 0) }, (_, index) => index);
  if (given.kind === "pods") return numbers.map((number) => ({ change: "apply", manifest: podOf(number, each) }));
  if (given.kind === "nodes") {
    return numbers.map((number) => ({ change: "addNode", manifest: nodeOf(number, each), zoneTurn: number }));
  }
  return [{ change: given.kind, name: given.node }];
}

/** @param {Record<string, FormDataEntryValue>} given */
function deedOf(given) {
  if (Number(given.gpus ?? 0)) return null; // the acts know cpu and memory only
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
    spec: {
      containers: [
        { name: "main", image: "registry.k8s.io/pause:3.10", resources: { requests, limits: gpuOf(requests) } },
      ],
    },
  };
}

/** Extended resources have a limit that equals the request. @param {Record<string, string>} requests */
function gpuOf(requests) {
  return requests[GPU] ? { [GPU]: requests[GPU] } : {};
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
  return html`
    <h2>What would happen</h2>
    ${worse.map((each) => html`<p class="failed">${each}</p>`)}
    <p class="sum" id="what-if-sum">
      ${count(course.starts.length, "pod")} would start, ${course.moves.length} move, ${course.lost.length} be lost,
      ${course.newlyPending.length} begin to wait${course.stillPending.length ? `; ${course.stillPending.length} wait as before` : ""}.
    </p>
    ${course.drainFlags.map(flagNeed)}
    ${course.orderMatters ? html`<p>Which pods get a node depends on the order in which their owners make them again.</p>` : nothing}
    ${fills(course.nodes)}
    ${podsTable(course)}
  `;
}

/** A flag that `kubectl drain` needs. @param {FlagNeed} need */
function flagNeed({ flag, pods }) {
  const more = pods.length > NAMED ? ` and ${pods.length - NAMED} more` : "";
  return html`<p>kubectl drain needs <code>${flag}</code> for ${pods.slice(0, NAMED).join(", ")}${more}.</p>`;
}

/** The nodes that would be filled otherwise. @param {UseChange[]} nodes */
function fills(nodes) {
  if (!nodes.length) return nothing;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Nodes before and after">
    <table class="fills">
      <caption>
        ${nodes.length > LISTED ? `The first ${LISTED} of ${nodes.length} nodes that change` : "Nodes before and after"}
      </caption>
      <thead>
        <tr>
          ${["Node", "cpu before", "cpu after", "memory before", "memory after"].map((each) => html`<th scope="col">${each}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${nodes.slice(0, LISTED).map(
          (each) => html`<tr>
            <th scope="row">${each.name}</th>
            ${fill(each.before, "cpu")} ${fill(each.after, "cpu")} ${fill(each.before, "memory")} ${fill(each.after, "memory")}
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

/** @param {Use | null} use @param {string} resource */
function fill(use, resource) {
  if (!use) return html`<td>no such node</td>`;
  const unit = resource === "cpu" ? 1000 : 1;
  const [used, all] = [(use.used[resource] ?? 0) * unit, (use.allocatable[resource] ?? 0) * unit];
  return html`<td>${bar(used, all)} ${amountOf(resource, used, all)}</td>`;
}
