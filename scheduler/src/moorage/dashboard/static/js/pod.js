// @ts-check
/** One pod: where it is, why, what would help, and what every attempt found. */

import { html, nothing, svg } from "../vendor/lit-html/lit-html.js";
import { act, outcome } from "./acting.js";
import { askAgain, asked } from "./asked.js";
import { clock, count, duration, nodeLink, podLink } from "./format.js";
import { parts } from "./route.js";
import { can, store } from "./store.js";

/** @typedef {import("./types.js").Explanation} Explanation */
/** @typedef {import("./types.js").Suggestion} Suggestion */
/** @typedef {import("./types.js").Attempt} Attempt */

const LISTED = 100;

export function podView() {
  const [, namespace, name] = parts();
  if (!namespace || !name) return choosePod();
  const key = encodeURIComponent(`${namespace}/${name}`);
  const path = `/moorage/v1/explain?pod=${key}`;
  const stamp = stampOf(namespace, name);
  const told = asked(path, stamp);
  const records = asked(`/moorage/v1/records?pod=${key}`, stamp);
  return html`
    <h2 class="name">${namespace}/${name}</h2>
    ${told.body ? explained(told.body.explanation, path) : nothing}
    ${told.trouble ? html`<p class="empty" role="status">${told.trouble}. <a href="/pod">Other pods</a></p>` : nothing}
    ${told.body || told.trouble ? nothing : html`<p class="empty busy" role="status">Asking the scheduler ...</p>`}
    ${told.body ? eventsOf(key, stamp) : nothing}
    ${records.body ? attempts(records.body.attempts) : html`<p class="quiet">${records.trouble}</p>`}
  `;
}

/** What is known of a pod without asking: when it changes, the answers are old. @param {string} namespace @param {string} name */
function stampOf(namespace, name) {
  /** @param {{namespace: string, name: string}} each */
  const same = (each) => each.namespace === namespace && each.name === name;
  const decision = store.decisions.find(same);
  const waiting = [...store.pods.values()].find(same);
  return `${decision?.number} ${decision?.end} ${waiting?.uid} ${waiting?.queue} ${waiting?.since}`;
}

function choosePod() {
  const waiting = [...store.pods.values()].slice(0, LISTED);
  if (!waiting.length) {
    return html`<p class="empty">No pod waits. Every pod has a view: follow its name in the cluster or among the decisions.</p>`;
  }
  return html`<p>Pods that wait:</p>
    <ul class="pods">
      ${waiting.map((pod) => html`<li><a href=${podLink(pod)}>${pod.namespace}/${pod.name}</a> <span class="quiet">${pod.queue}</span></li>`)}
    </ul>`;
}

/** @param {Explanation} told @param {string} path */
function explained(told, path) {
  return html`
    <p class="sentence">${told.sentence}</p>
    ${told.notes.map((each) => html`<p class="quiet">${each}</p>`)}
    ${
      told.causes.length
        ? html`<h3>Why no node takes it</h3>
            <ol>
              ${told.causes.map(
                (each) => html`<li>
                  <strong>${each.fact || each.plugins.join(", ")}</strong> on ${count(each.nodes, "node")}
                  <span class="quiet">${each.plugins.join(", ")}: ${each.reasons.join("; ")}</span>
                </li>`,
              )}
            </ol>`
        : nothing
    }
    ${
      told.waysOut.length
        ? html`<h3>What would help; each was tried</h3>
            <ul class="suggestions">
              ${told.waysOut.map((each) => suggestionItem(told, each, path))}
            </ul>
            ${outcome("apply-suggestion")}`
        : nothing
    }
    ${heatMap(told)}
  `;
}

/** @param {Explanation} told @param {Suggestion} suggestion @param {string} path */
function suggestionItem(told, suggestion, path) {
  const patch = suggestion.patch.length ? JSON.stringify(suggestion.patch, null, 1) : "";
  return html`<li>
    <span>${suggestion.text}</span>
    <span class="quiet">then ${count(suggestion.nodes, "node")} would take it</span>
    ${suggestion.command ? html`<pre>${suggestion.command}</pre>` : nothing}
    ${patch ? html`<details><summary>as a patch</summary><pre>${patch}</pre></details>` : nothing}
    ${
      can("apply-suggestion")
        ? html`<button
            @click=${async () => {
              await act("apply-suggestion", {
                namespace: told.namespace,
                name: told.name,
                text: suggestion.text,
                patch: suggestion.patch,
                delete: suggestion.delete,
                alsoDelete: suggestion.alsoDelete,
                create: suggestion.create,
                changes: suggestion.changes,
              });
              askAgain(path);
            }}
          >
            Apply
          </button>`
        : nothing
    }
  </li>`;
}

/** What every plugin says of the best nodes. @param {Explanation} told */
function heatMap(told) {
  if (!told.nodes.length) return nothing;
  const filters = new Set(told.nodes.flatMap((each) => Object.keys(each.rejections)));
  const scores = new Set(told.nodes.flatMap((each) => Object.keys(each.scores)));
  const most = Math.max(...told.nodes.flatMap((each) => Object.values(each.scores)), 1);
  return html`<h3>What each plugin says of the nodes</h3>
    <p class="quiet">
      The best ${told.nodes.length} of ${count(told.nodeCount, "node")}; ${told.feasible} would take the pod now
    </p>
    <div class="scroll" tabindex="0" role="region" aria-label="Plugins and nodes">
      <table class="heat" aria-label="Plugins and nodes">
        <thead>
          <tr>
            <th scope="col">Node</th>
            <th scope="col" class="figure">Total</th>
            ${[...filters, ...scores].map((each) => html`<th scope="col" class="slanted"><span>${each}</span></th>`)}
          </tr>
        </thead>
        <tbody>
          ${told.nodes.map(
            (node) => html`<tr>
              <th scope="row"><a href=${nodeLink(node.node)}>${node.node}</a></th>
              <td class="figure">${node.score ?? "rejected"}</td>
              ${[...filters].map((each) => {
                const reasons = node.rejections[each];
                return reasons
                  ? html`<td class="no" title=${reasons.join("; ")}>no</td>`
                  : html`<td class="yes">yes</td>`;
              })}
              ${[...scores].map((each) => scoreCell(node.scores[each], most))}
            </tr>`,
          )}
        </tbody>
      </table>
    </div>`;
}

/** @param {number | undefined} score @param {number} most */
function scoreCell(score, most) {
  if (score === undefined) return html`<td></td>`;
  return html`<td class="figure score-${Math.round((4 * score) / most)}">${score}</td>`;
}

/** What components reported about the pod. @param {string} key @param {string} stamp */
function eventsOf(key, stamp) {
  const told = asked(`/moorage/v1/events?pod=${key}`, stamp);
  if (told.trouble) return html`<p class="quiet">Events: ${told.trouble}</p>`;
  /** @type {import("./types.js").ReportedEvent[]} */
  const found = told.body?.events ?? [];
  if (!found.length) return nothing;
  return html`<h3>Events</h3>
    <div class="scroll" tabindex="0" role="region" aria-label="Events">
      <table class="events">
        <caption>
          Newest first
        </caption>
        <thead>
          <tr>${["Last", "Reason", "Message", "From"].map((each) => html`<th scope="col">${each}</th>`)}<th scope="col" class="figure">Times</th></tr>
        </thead>
        <tbody>
          ${found.map(
            (each) => html`<tr>
              <td><time>${clock(each.last)}</time></td>
              <td class=${each.type === "Warning" ? "failed" : ""}>${each.reason}</td>
              <td class="reason">${each.message}</td>
              <td>${each.source}</td>
              <td class="figure">${each.count}</td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>`;
}

/** @param {Attempt[]} found */
function attempts(found) {
  if (!found.length) return nothing;
  const first = Date.parse(found[0].time);
  const span = Math.max(Date.parse(found[found.length - 1].time) - first, 1);
  return html`<h3>${count(found.length, "attempt")}</h3>
    <svg class="line" viewBox="0 0 1000 24" preserveAspectRatio="none" role="img" aria-label="The attempts on a time line, from ${clock(found[0].time)} to ${clock(found[found.length - 1].time)}">
      ${line()} ${found.map((each) => mark(each, (Date.parse(each.time) - first) / span))}
    </svg>
    <ol class="attempts" reversed>
      ${[...found].reverse().map(
        (each) => html`<li value=${each.attempt}>
          <time>${clock(each.time)}</time> <strong class="outcome ${each.outcome}">${each.outcome}</strong>
          ${each.node ? html`to <a href=${nodeLink(each.node)}>${each.node}</a>` : nothing}
          <span class="quiet">${each.feasible} of ${each.evaluated} nodes, ${duration(each.seconds)}${each.end ? `, ${each.end}` : ""}</span>
          ${each.message ? html`<p class="reason">${each.message}</p>` : nothing}
          ${
            each.before.length
              ? html`<details>
                  <summary>before it</summary>
                  <ul>
                    ${each.before.map((entry) => html`<li>${clock(entry.time)} ${entry.what} <span class="quiet">${entry.cause}</span></li>`)}
                  </ul>
                </details>`
              : nothing
          }
        </li>`,
      )}
    </ol>`;
}

function line() {
  return svg`<line x1="0" y1="12" x2="1000" y2="12"></line>`;
}

/** @param {Attempt} each @param {number} part */
function mark(each, part) {
  return svg`<rect class=${each.outcome} x=${4 + 986 * part} y="4" width="6" height="16"></rect>`;
}
