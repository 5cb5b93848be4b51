// @ts-check
/** The cluster in one screen: what waits and why, what is full, and what changed. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { asked } from "./asked.js";
import { bar } from "./bar.js";
import { foldName } from "./folding.js";
import { amountOf, between, clock, count, percent, workloadLink } from "./format.js";
import { spark } from "./spark.js";
import { store, waitingPods } from "./store.js";
import { requested } from "./tiles.js";

/** @typedef {import("./types.js").Moment} Moment */
/** @typedef {import("./types.js").Fold} Fold */

const ROWS = 10;
const RECENT_SECONDS = 15 * 60;

export function overviewView() {
  return html`${curves()} ${waiting()} ${fullest()}`;
}

function curves() {
  const { body, trouble } = asked("/moorage/v1/history");
  if (trouble) return html`<p class="quiet">No curves: ${trouble}</p>`;
  if (!body) return html`<p class="quiet busy" role="status">Asking for the last hour ...</p>`;
  /** @type {Moment[]} */
  const moments = body.moments;
  if (!moments.length) {
    return html`<p class="quiet">No curves: only a scheduler that schedules keeps the last hour.</p>`;
  }
  return html`<section aria-labelledby="hour">
    <h2 id="hour">Since ${clock(moments[0].time)}</h2>
    <div class="sparks">
      ${spark({ title: "Waiting", values: moments.map(pending), words: (value) => count(value, "pod") })}
      ${spark({
        title: "Decisions",
        values: perMinute(moments),
        words: (value) => `${Math.round(value)} a minute`,
      })}
      ${Object.keys(moments[moments.length - 1].fills).map((resource) =>
        spark({
          title: `Requested ${resource}`,
          // A resource that no node offered then has no entry.
          values: moments.map(
            ({ fills }) => (fills[resource]?.requested ?? 0) / Math.max(1, fills[resource]?.allocatable ?? 0),
          ),
          most: 1,
          words: (value) => percent(value, 1),
        }),
      )}
    </div>
    ${recent(moments)}
  </section>`;
}

/** @param {Moment} moment */
function pending(moment) {
  return moment.active + moment.backoff + moment.unschedulable + moment.gated;
}

/** The decisions a minute between each moment and the one before. @param {Moment[]} moments */
function perMinute(moments) {
  const found = moments.slice(1).map((each, at) => {
    const before = moments[at];
    const minutes = (Date.parse(each.time) - Date.parse(before.time)) / 60000;
    const decided = each.bound + each.failed - before.bound - before.failed;
    return minutes > 0 ? decided / minutes : 0;
  });
  // The present moment may be milliseconds after the last one, and its rate says nothing.
  return found.length > 1 ? found.slice(0, -1) : [0, ...found];
}

/** What changed in the last quarter of an hour. @param {Moment[]} moments */
function recent(moments) {
  const now = moments[moments.length - 1];
  const since = Date.parse(now.time) - RECENT_SECONDS * 1000;
  const then = moments.find((each) => Date.parse(each.time) >= since) ?? now;
  const words = [
    `${count(now.bound - then.bound, "pod")} bound`,
    `${count(now.failed - then.failed, "attempt")} without a node`,
    `${count(now.evicted - then.evicted, "pod")} evicted by preemption`,
    `waiting: ${change(pending(then), pending(now))}`,
    `nodes: ${change(then.nodes, now.nodes)}`,
  ];
  return html`<h3>In the last ${between(now.time, then.time)}</h3>
    <ul class="recent">
      ${words.map((each) => html`<li>${each}</li>`)}
    </ul>`;
}

/** @param {number} before @param {number} now */
function change(before, now) {
  return before === now ? `${now}, as before` : `${before} before, ${now} now`;
}

function waiting() {
  const total = waitingPods();
  if (!total) return html`<h2>Waiting</h2><p class="empty">No pod waits: every pod has a node.</p>`;
  const { body, trouble } = asked("/moorage/v1/queue?by=owner");
  if (trouble) return html`<h2>Waiting</h2><p class="quiet">${trouble}</p>`;
  if (!body) return html`<h2>Waiting</h2><p class="quiet busy" role="status">Asking what waits ...</p>`;
  /** @type {Fold[]} */
  const folds = (body.folds ?? []).slice(0, ROWS);
  const left = total - folds.reduce((sum, each) => sum + (each.pods ?? 1), 0);
  return html`<h2>Waiting</h2>
    <div class="scroll" tabindex="0" role="region" aria-label="Waiting">
      <table>
        <caption>
          ${count(total, "pod")}, by owner and reason
        </caption>
        <thead>
          <tr>
            ${["Pods", "Owner", "Reason", "Longest", "Message"].map((each, at) => html`<th scope="col" class=${at ? "" : "figure"}>${each}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${folds.map(row)}
        </tbody>
      </table>
    </div>
    ${left > 0 ? html`<p class="quiet">and ${count(left, "pod")} more: <a href="/queue">the queue</a></p>` : nothing}`;
}

/** @param {Fold} fold */
function row(fold) {
  const named = fold.names?.[0] ?? "";
  const one = { namespace: fold.namespace ?? "", name: named, owner: fold.owner, group: fold.group };
  const pods = fold.pods ?? 1;
  // Pods without an owner and a group are one row by their reason.
  const alone = !(fold.group || fold.owner);
  const address = alone && pods > 1 ? `/workloads?find=${encodeURIComponent(fold.reason || named)}` : workloadLink(one);
  return html`<tr>
    <td class="figure">${pods}</td>
    <th scope="row">
      <a href=${address}>${foldName(one)}</a>${alone && pods > 1 ? ` and ${pods - 1} more` : nothing}
    </th>
    <td>${fold.reason || "-"}</td>
    <td>${fold.oldest ? between(store.time, fold.oldest) : "-"}</td>
    <td class="reason">${fold.message ?? ""}</td>
  </tr>`;
}

/** What all nodes together have the least of. */
function fullest() {
  /** @type {Map<string, {used: number, all: number}>} */
  const sums = new Map();
  for (const node of store.nodes.values()) {
    for (const [resource, all] of Object.entries(node.allocatable)) {
      if (!all) continue;
      const sum = sums.get(resource) ?? { used: 0, all: 0 };
      sum.all += all;
      sum.used += requested(node, resource);
      sums.set(resource, sum);
    }
  }
  const sorted = [...sums].sort(([, a], [, b]) => b.used / b.all - a.used / a.all).slice(0, ROWS);
  return html`<h2>Fullest resources</h2>
    <table class="fullest">
      <caption>
        What pods request of all nodes together
      </caption>
      <thead>
        <tr>
          <th scope="col">Resource</th>
          <th scope="col" class="figure">Requested</th>
          <th scope="col">Of all nodes</th>
        </tr>
      </thead>
      <tbody>
        ${sorted.map(
          ([resource, { used, all }]) => html`<tr>
            <th scope="row"><a href="/cluster?resource=${encodeURIComponent(resource)}">${resource}</a></th>
            <td class="figure">${percent(used, all)}</td>
            <td>${bar(used, all)} ${amountOf(resource, used, all)}</td>
          </tr>`,
        )}
      </tbody>
    </table>`;
}
