// @ts-check
/** The queue: where pods wait, in lanes, and why. */

import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { acting } from "./acting.js";
import { finder } from "./controls.js";
import { folded, foldName } from "./folding.js";
import { between, count, nodeLink, podLink } from "./format.js";
import { choice } from "./route.js";
import { store, waitingPods } from "./store.js";

/** @typedef {import("./types.js").WaitingPod} WaitingPod */

const SHOWN = 60;
/** @type {[string, string, string][]} */
const LANES = [
  ["active", "Active", "tried as soon as its turn comes"],
  ["in-flight", "In flight", "an attempt decides about it"],
  ["backoff", "Backoff", "waits after a failed attempt"],
  ["unschedulable", "Unschedulable", "waits for an event that may help"],
  ["gated", "Gated", "a PreEnqueue plugin keeps it out"],
  ["permit", "Permit", "has a node, and is held"],
  ["binding", "Binding", "has a node, and is being bound"],
];

export function queueView() {
  const total = waitingPods();
  const filter = choice("find", "");
  /** @type {Map<string, WaitingPod[]>} */
  const lanes = new Map(LANES.map(([name]) => [name, []]));
  for (const pod of store.pods.values()) {
    if (!filter || `${pod.namespace}/${pod.name} ${pod.message ?? ""}`.includes(filter)) {
      lanes.get(pod.queue)?.push(pod);
    }
  }
  return html`
    <div class="choices">
      ${finder(filter, "pod or reason")}
    </div>
    ${total ? nothing : html`<p class="empty">No pod waits: every pod has a node.</p>`} ${reasons()}
    <div class="lanes">
      ${LANES.map(([name, title, words]) => lane(name, title, words, lanes.get(name) ?? []))}
    </div>
    ${landed()} ${acting("create-pods")}
  `;
}

function reasons() {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const pod of store.pods.values()) {
    const key = (pod.plugins ?? []).join(", ");
    if (key) counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  if (!counts.size) return nothing;
  const most = [...counts].sort((a, b) => b[1] - a[1]);
  return html`<p class="sum">
    Held up by ${most.map(([plugins, pods], index) => html`${index ? "; " : ""}<strong>${plugins}</strong>: ${count(pods, "pod")}`)}
  </p>`;
}

/** @param {string} name @param {string} title @param {string} words @param {WaitingPod[]} pods */
function lane(name, title, words, pods) {
  const size = store.sizes[name] ?? 0;
  const sorted = pods.sort(
    (a, b) => (a.position ?? 0) - (b.position ?? 0) || ((a.until ?? "") < (b.until ?? "") ? -1 : 1),
  );
  const folds = folded(sorted);
  const left = size - folds.slice(0, SHOWN).reduce((sum, each) => sum + each.rows.length, 0);
  // A lane that is wide only while it has pods would move the others; these two change rarely.
  const long = ["backoff", "unschedulable"].includes(name) || (["gated", "permit"].includes(name) && size > 0);
  return html`<section class="lane ${long ? "long" : ""}" aria-labelledby="lane-${name}" data-lane=${name}>
    <h2 id="lane-${name}">${title} <span class="number">${size}</span></h2>
    <p class="quiet">${words}</p>
    <ul>
      ${repeat(folds.slice(0, SHOWN), (each) => each.key, card)}
    </ul>
    ${left > 0 ? html`<p class="quiet">and ${left} more</p>` : nothing}
  </section>`;
}

/** @param {{rows: WaitingPod[]}} fold */
function card({ rows }) {
  const [pod] = rows;
  const why = (pod.plugins ?? []).join(", ") || (pod.message ?? "");
  return html`<li class=${pod.moved ? "card moved" : "card"} data-pod="${pod.namespace}/${pod.name}">
    ${
      rows.length > 1
        ? html`<details>
            <summary>${foldName(pod)}: ${count(rows.length, "pod")}</summary>
            <ul>
              ${rows.map((each) => html`<li><a href=${podLink(each)}>${each.name}</a></li>`)}
            </ul>
          </details>`
        : html`<a href=${podLink(pod)}>${pod.namespace}/${pod.name}</a>`
    }
    <span class="quiet">
      ${pod.attempts ? count(pod.attempts, "attempt") : ""}${pod.until ? html`, again in ${between(pod.until, store.time)}` : nothing}
      ${pod.node ? html`on <a href=${nodeLink(pod.node)}>${pod.node}</a>` : nothing} ${pod.step ?? ""}
    </span>
    ${why ? html`<span class="why" title=${pod.message ?? ""}>${why}</span>` : nothing}
  </li>`;
}

function landed() {
  const bound = store.decisions.filter((each) => each.end === "bound").slice(0, 12);
  if (!bound.length) return nothing;
  return html`<section aria-labelledby="landed">
    <h2 id="landed">Bound last</h2>
    <ul class="landed">
      ${repeat(
        bound,
        (each) => each.number,
        (each) => html`<li data-pod="${each.namespace}/${each.name}">
          <a href=${podLink(each)}>${each.namespace}/${each.name}</a> to
          <a href=${nodeLink(each.node ?? "")}>${each.node}</a>
        </li>`,
      )}
    </ul>
  </section>`;
}
