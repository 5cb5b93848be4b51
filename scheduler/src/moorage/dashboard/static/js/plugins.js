// @ts-check
/** Which plugins run where, and what each costs. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { asked } from "./asked.js";
import { count, duration } from "./format.js";

/** @typedef {{point: string, calls: number, seconds: number, errors: number}} Cost */
/** @typedef {{name: string, costs: Cost[]}} Plugin */
/** @typedef {{schedulerName: string, points: Record<string, string[]>, weights: Record<string, number>, extenders: string[]}} Profile */

export function pluginsView() {
  const told = asked("/moorage/v1/plugins");
  if (told.trouble) return html`<p class="empty" role="status">${told.trouble}</p>`;
  if (!told.body) return html`<p class="empty busy" role="status">Asking the scheduler ...</p>`;
  /** @type {Plugin[]} */
  const plugins = told.body.plugins;
  return html`${told.body.profiles.map(profile)} ${costs(plugins)}`;
}

/** @param {Profile} each */
function profile(each) {
  return html`<section aria-label="Profile ${each.schedulerName}">
    <h2>Profile ${each.schedulerName}</h2>
    <dl class="points">
      ${Object.entries(each.points).map(
        ([point, names]) => html`<dt>${point}</dt>
          <dd>
            ${names.map(
              (name) => html`<span class="chip"
                >${name}${point === "score" && each.weights[name] ? html` <span class="quiet">×${each.weights[name]}</span>` : nothing}</span
              >`,
            )}
          </dd>`,
      )}
    </dl>
    ${each.extenders.length ? html`<p>Extenders: ${each.extenders.join(", ")}</p>` : nothing}
  </section>`;
}

/** @param {Plugin[]} plugins */
function costs(plugins) {
  const rows = plugins.flatMap((plugin) => plugin.costs.map((cost) => ({ name: plugin.name, ...cost })));
  if (!rows.length) return html`<p class="empty">No attempt was timed yet: about one of ten is.</p>`;
  rows.sort((a, b) => b.seconds / b.calls - a.seconds / a.calls);
  const most = rows[0].seconds / rows[0].calls || 1;
  return html`<h2>What each costs</h2>
    <div class="scroll" tabindex="0" role="region" aria-label="Costs">
      <table>
        <caption>
          The mean of the calls that were timed, about one attempt of ten; dearest first
        </caption>
        <thead>
          <tr>${["Plugin", "Point", "Mean", "", "Timed", "Errors"].map((each, index) => html`<th scope="col" class=${index > 1 ? "figure" : ""}>${each || html`<span class="hidden">Bar</span>`}</th>`)}</tr>
        </thead>
        <tbody>
          ${rows.map(
            (each) => html`<tr>
              <th scope="row">${each.name}</th>
              <td>${each.point}</td>
              <td class="figure">${duration(each.seconds / each.calls)}</td>
              <td>
                <svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
                  <rect class="used" width=${(100 * each.seconds) / each.calls / most} height="8"></rect>
                </svg>
              </td>
              <td class="figure">${count(each.calls, "call")}</td>
              <td class=${each.errors ? "figure failed" : "figure"}>${each.errors}</td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>`;
}
