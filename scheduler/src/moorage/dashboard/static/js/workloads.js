// @ts-check
/** The workloads and every pod of the cluster, with a search over all that is known of them. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { finder, labelBox, select } from "./controls.js";
import { foldName } from "./folding.js";
import { amount, count, nodeLink, podLink, workloadLink } from "./format.js";
import { objectPanel, selectionPanel } from "./objects.js";
import { choice, parts } from "./route.js";
import { store, waitingPods } from "./store.js";
import { table } from "./table.js";

/**
 * @typedef {{namespace: string, name: string, owner: string, group: string, node: string, reason: string,
 *   queue: string, message: string, requests: Record<string, number>}} Row
 * @typedef {{title: string, rows: Row[]}} Workload
 */

const SHOWN = 200;
// Pods of an open row that are named.
const NAMED = 50;
const EVERY = "every namespace";

/** @type {{version: number, rows: Row[]}} */
let known = { version: -1, rows: [] };

export function workloadsView() {
  const [, namespaceOfOne, type, name] = parts();
  if (name) return html`<p><a href="/workloads">All workloads</a></p> ${objectPanel(type, namespaceOfOne, name)}`;
  const rows = everyPod();
  const find = choice("find", "");
  const namespace = choice("namespace", "");
  const label = choice("label", "");
  const one = choice("as", "workloads") === "pods";
  const found = rows.filter(
    (each) => (!namespace || each.namespace === namespace) && (!find || text(each).includes(find)),
  );
  return html`
    <div class="choices">
      ${finder(find, "name, owner, node or reason")}
      ${select("namespace", "Namespace", namespace || EVERY, [EVERY, ...new Set(rows.map((each) => each.namespace).sort())], EVERY)}
      ${select("as", "Shown as", one ? "pods" : "workloads", ["workloads", "pods"])}
      ${labelBox(label)}
    </div>
    ${label ? selectionPanel(label, namespace) : nothing} ${unlisted()} ${one ? pods(found) : workloads(found)}
  `;
}

/** Every pod that the page knows: on the nodes, and waiting. */
function everyPod() {
  if (known.version === store.version) return known.rows;
  /** @type {Map<string, Row>} */
  const rows = new Map();
  for (const pod of store.pods.values()) {
    rows.set(pod.uid, {
      namespace: pod.namespace,
      name: pod.name,
      owner: pod.owner ?? "",
      group: pod.group ?? "",
      node: "",
      reason: pod.reason ?? "",
      queue: pod.queue,
      message: pod.message ?? "",
      requests: {},
    });
  }
  for (const [node, { pods: filling }] of store.nodes) {
    for (const pod of filling ?? []) {
      rows.set(pod.uid, {
        namespace: pod.namespace,
        name: pod.name,
        owner: pod.owner ?? "",
        group: pod.group ?? "",
        node,
        reason: "",
        queue: "",
        message: "",
        requests: pod.requests ?? {},
      });
    }
  }
  known = { version: store.version, rows: [...rows.values()] };
  return known.rows;
}

/** @param {Row} row */
function text(row) {
  return `${row.namespace}/${row.name} ${row.owner} ${row.group} ${row.node} ${row.reason} ${row.message}`;
}

/** Says how many pods the page does not know one by one. */
function unlisted() {
  const waiting = waitingPods();
  const left = Math.max(0, waiting - store.pods.size);
  let others = 0;
  for (const node of store.nodes.values()) others += node.others?.pods ?? 0;
  return html`
    ${left ? html`<p class="quiet">${count(left, "pod")} more wait that are not listed here: <a href="/queue">the queue</a> counts them.</p>` : nothing}
    ${others ? html`<p class="quiet">${count(others, "pod")} of other namespaces are not listed.</p>` : nothing}
  `;
}

/** @param {Row[]} rows */
function workloads(rows) {
  /** @type {Map<string, Workload>} */
  const found = new Map();
  for (const row of rows) {
    const title = foldName(row);
    const workload = found.get(title);
    if (workload) workload.rows.push(row);
    else found.set(title, { title, rows: [row] });
  }
  /** @param {Workload} each */
  const waits = (each) => each.rows.filter((row) => !row.node).length;
  const sorted = [...found.values()].sort((a, b) => waits(b) - waits(a) || b.rows.length - a.rows.length);
  return table(
    sorted.length > SHOWN ? `The first ${SHOWN} of ${sorted.length} workloads` : count(sorted.length, "workload"),
    ["Workload", "Pods", "On nodes", "Waiting", "Why", "Takes cpu", "Takes memory"],
    sorted.slice(0, SHOWN).map((each) => {
      const waiting = each.rows.filter((row) => !row.node);
      return html`<tr>
        <th scope="row">
          <details>
            <summary>${each.title}</summary>
            <ul>
              ${each.rows.slice(0, NAMED).map(
                (row) => html`<li>
                  <a href=${podLink(row)}>${row.name}</a>
                  ${row.node ? html`on <a href=${nodeLink(row.node)}>${row.node}</a>` : row.reason || row.queue}
                </li>`,
              )}
              ${each.rows.length > NAMED ? html`<li>and ${each.rows.length - NAMED} more</li>` : nothing}
            </ul>
          </details>
        </th>
        <td class="figure">${each.rows.length}</td>
        <td class="figure">${each.rows.length - waiting.length}</td>
        <td class="figure">${waiting.length || "-"}</td>
        <td>${reasons(waiting)} ${waiting.length ? html`<a href=${workloadLink(each.rows[0])}>what would help</a>` : nothing}</td>
        <td class="figure">${amount("cpu", sum(each.rows, "cpu"))}</td>
        <td class="figure">${amount("memory", sum(each.rows, "memory"))}</td>
      </tr>`;
    }),
  );
}

/** The reasons of waiting pods, the commonest first. @param {Row[]} waiting */
function reasons(waiting) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const row of waiting) {
    const reason = row.reason || row.queue;
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  const most = [...counts].sort(([, a], [, b]) => b - a);
  return most.length === 1 ? most[0][0] : most.map(([reason, pods]) => `${reason}: ${pods}`).join(", ");
}

/** @param {Row[]} rows @param {string} resource */
function sum(rows, resource) {
  return rows.reduce((all, row) => all + (row.requests[resource] ?? 0), 0);
}

/** @param {Row[]} rows */
function pods(rows) {
  return table(
    rows.length > SHOWN ? `The first ${SHOWN} of ${rows.length} pods` : count(rows.length, "pod"),
    ["Pod", "Owner", "Node", "State"],
    rows.slice(0, SHOWN).map(
      (row) => html`<tr>
        <th scope="row"><a href=${podLink(row)}>${row.namespace}/${row.name}</a></th>
        <td>${row.group || row.owner || "-"}</td>
        <td>${row.node ? html`<a href=${nodeLink(row.node)}>${row.node}</a>` : "-"}</td>
        <td>${row.node ? "on its node" : row.reason || row.queue}</td>
      </tr>`,
    ),
  );
}
