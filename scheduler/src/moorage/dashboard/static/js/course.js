// @ts-check
/** The pods of a what-if answer before and after the changes; pods that are alike are one row. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { folded, foldName } from "./folding.js";
import { count, nodeLink } from "./format.js";
import { store } from "./store.js";

/**
 * @typedef {{pod: string, owner?: string, group?: string}} Affected
 * @typedef {Affected & {node: string}} Start
 * @typedef {Affected & {fromNode: string, successor: string, toNode: string}} Move
 * @typedef {Affected & {reason: string}} Waiting
 * @typedef {Affected & {node: string}} Loss
 * @typedef {Affected & {node: string, reason: string}} NotEvicted
 * @typedef {{starts: Start[], moves: Move[], lost: Loss[], newlyPending: Waiting[],
 *   stillPending: Waiting[], notEvicted: NotEvicted[]}} PodsOfCourse
 * @typedef {{namespace: string, name: string, uid: string, owner?: string, group?: string,
 *   reason: string, fate: string, before: string, after: string}} Row
 */

const LISTED = 200;
// Nodes of a row that are named.
const NODES = 3;
// How the text of a member begins that had a place, while its group has none.
const GROUP_FAILED = "pod group is unschedulable: ";

/** @param {PodsOfCourse} course */
export function podsTable(course) {
  const waiting = ofGroups([
    ...course.newlyPending.map((each) => row(each, "begins to wait", "", "", each.reason)),
    ...course.stillPending.map((each) => row(each, "still waits", "", "", each.reason)),
  ]);
  const rows = [
    ...course.starts.map((each) => row(each, "starts", "", each.node)),
    ...course.moves.map((each) => row(each, "moves", each.fromNode, each.toNode, "", each.successor)),
    ...course.lost.map((each) => row(each, "is lost", each.node, "")),
    ...course.notEvicted.map((each) => row(each, "is not evicted", each.node, each.node, each.reason)),
    ...waiting,
  ];
  if (!rows.length) return html`<p class="empty">No pod would start, move or wait.</p>`;
  const folds = folded(rows, (each) => each.fate);
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Pods before and after">
    <table>
      <caption>
        Pods before and after${folds.length > LISTED ? `, the first ${LISTED} of ${folds.length} rows` : ""}
      </caption>
      <thead>
        <tr>${["Pod", "Before", "After", "What"].map((each) => html`<th scope="col">${each}</th>`)}</tr>
      </thead>
      <tbody>
        ${folds.slice(0, LISTED).map(foldRow)}
      </tbody>
    </table>
  </div>`;
}

/**
 * @param {Affected} of @param {string} fate @param {string} before @param {string} after
 * @param {string} reason @param {string} successor the pod that its owner makes in its place
 * @returns {Row}
 */
function row({ pod, owner, group }, fate, before, after, reason = "", successor = "") {
  const [namespace, name] = pod.split("/");
  const shown = successor ? `${name}, as ${successor}` : name;
  return { namespace, name: shown, uid: pod, owner, group, reason, fate, before, after };
}

/** Members of a group that waits as a whole have the reason of their group. @param {Row[]} rows */
function ofGroups(rows) {
  /** @type {Map<string, string>} */
  const reasons = new Map();
  for (const { group, reason } of rows) {
    if (group && reason.startsWith(GROUP_FAILED)) reasons.set(group, reason.slice(GROUP_FAILED.length));
  }
  return rows.map((each) => ({ ...each, reason: reasons.get(each.group ?? "") ?? each.reason }));
}

/** @param {{rows: Row[]}} fold */
function foldRow({ rows }) {
  const [first] = rows;
  return html`<tr>
    <th scope="row">
      ${
        rows.length > 1
          ? html`<details>
              <summary>${foldName(first)}: ${count(rows.length, "pod")}</summary>
              <ul>
                ${rows.slice(0, LISTED).map((each) => html`<li>${each.name}</li>`)}
              </ul>
            </details>`
          : `${first.namespace}/${first.name}`
      }
    </th>
    <td>${nodes(rows.map((each) => each.before))}</td>
    <td>${nodes(rows.map((each) => each.after))}</td>
    <td class="reason">${first.fate}${first.reason ? `: ${first.reason}` : nothing}</td>
  </tr>`;
}

/** @param {string[]} all one for each pod, "" for none */
function nodes(all) {
  const names = [...new Set(all.filter(Boolean))];
  const linked = names
    .slice(0, NODES)
    .map((name) => (store.nodes.has(name) ? html`<a href=${nodeLink(name)}>${name}</a> ` : `${name} `));
  return html`${linked}${names.length > NODES ? `and ${names.length - NODES} more` : nothing}`;
}
