// @ts-check
/** The stream of decisions, and how long they took. */

import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { finder, select } from "./controls.js";
import { folded, foldName } from "./folding.js";
import { clock, count, duration, nodeLink, podLink } from "./format.js";
import { choice } from "./route.js";
import { store } from "./store.js";

/** @typedef {import("./types.js").Decision} Decision */

const SHOWN = 100;
// Nodes of a row that are named.
const NODES = 3;
const FOLDS = ["owner", "none"];
const OUTCOMES = ["all", "bind", "reject", "error"];

export function decisionsView() {
  if (!store.decisions.length) {
    return store.about?.watches
      ? html`<p class="empty">Another scheduler decides here, and its decisions are not known. Its Events are in each pod's view.</p>`
      : html`<p class="empty">No decision yet. A scheduler with --records-bytes=0 tells none.</p>`;
  }
  const filter = choice("find", "");
  const by = choice("fold", "owner");
  const outcome = choice("outcome", "all");
  const found = store.decisions.filter(
    (each) =>
      (outcome === "all" || each.outcome === outcome) &&
      `${each.namespace}/${each.name} ${each.owner ?? ""} ${each.node ?? ""} ${each.message ?? ""}`.includes(filter),
  );
  const folds = folded(found, (each) => (by === "owner" ? each.outcome : String(each.number)));
  return html`
    <div class="choices">
      ${finder(filter, "pod, node or reason")} ${select("outcome", "Outcome", outcome, OUTCOMES)}
      ${select("fold", "Folded by", by, FOLDS)}
    </div>
    ${latency(found)}
    <div class="scroll" tabindex="0" role="region" aria-label="Decisions">
      <table>
        <caption>
          ${folds.length > SHOWN ? `The newest ${SHOWN} of ${folds.length} rows` : "Newest first"}
        </caption>
        <thead>
          <tr>
            ${["Time", "Outcome", "Pod", "Node or reason"].map((each) => html`<th scope="col">${each}</th>`)}
            ${["Nodes", "Took"].map((each) => html`<th scope="col" class="figure">${each}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${repeat(folds.slice(0, SHOWN), (each) => each.key, row)}
        </tbody>
      </table>
    </div>
  `;
}

/** @param {{rows: Decision[]}} fold the newest first */
function row({ rows }) {
  const [each] = rows;
  const nodes = [...new Set(rows.flatMap((one) => (one.node ? [one.node] : [])))];
  return html`<tr>
    <td><time>${clock(each.time)}</time></td>
    <td class="outcome ${each.outcome}">${each.outcome}</td>
    <th scope="row">
      ${
        rows.length > 1
          ? html`<details>
              <summary>${foldName(each)}: ${count(rows.length, "decision")}</summary>
              <ul>
                ${rows.slice(0, SHOWN).map((one) => html`<li><a href=${podLink(one)}>${one.name}</a> <time>${clock(one.time)}</time></li>`)}
              </ul>
            </details>`
          : html`<a href=${podLink(each)}>${each.namespace}/${each.name}</a>`
      }
    </th>
    <td class="reason">
      ${nodes.slice(0, NODES).map((node) => html`<a href=${nodeLink(node)}>${node}</a> `)}
      ${nodes.length > NODES ? `and ${nodes.length - NODES} more ` : nothing}${each.message ?? ""}
    </td>
    <td class="figure">${each.feasible ?? 0} of ${each.evaluated ?? 0}</td>
    <td class="figure">${duration(
      quantile(
        rows.map((one) => one.seconds),
        0.5,
      ),
    )}</td>
  </tr>`;
}

/** Each part's median and 99th percentile. @param {Decision[]} found */
function latency(found) {
  /** @type {Map<string, number[]>} */
  const parts = new Map([["deciding", found.map((each) => each.seconds)]]);
  for (const each of found) {
    for (const step of each.steps ?? []) {
      const known = parts.get(step.name);
      if (known) known.push(step.seconds);
      else parts.set(step.name, [step.seconds]);
    }
  }
  const told = [...parts].filter(([, values]) => values.length);
  const longest = Math.max(...told.map(([, values]) => quantile(values, 0.99)), 1e-9);
  return html`<table class="latency">
    <caption>
      How long each part took: median and 99th of a hundred
    </caption>
    <thead>
      <tr><th scope="col">Part</th><th scope="col">To the median, then to the 99th</th><th scope="col" class="figure">Median</th><th scope="col" class="figure">99th</th></tr>
    </thead>
    <tbody>
      ${told.map(([part, values]) => {
        const middle = quantile(values, 0.5);
        const late = quantile(values, 0.99);
        return html`<tr>
          <th scope="row">${part}</th>
          <td>
            <svg class="bar wide" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
              <rect class="late" width=${(100 * late) / longest} height="8"></rect>
              <rect class="used" width=${(100 * middle) / longest} height="8"></rect>
            </svg>
          </td>
          <td class="figure">${duration(middle)}</td>
          <td class="figure">${duration(late)}</td>
        </tr>`;
      })}
    </tbody>
  </table>`;
}

/** @param {number[]} values @param {number} part */
function quantile(values, part) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0;
}
