// @ts-check
/** One workload or group: how many of its pods run, what keeps the others, and what would help. */

import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { askedAbout } from "./asked.js";
import { count, podLink } from "./format.js";
import { table } from "./table.js";

/** @typedef {import("./types.js").ObjectExplanation} ObjectExplanation */
/** @typedef {import("./types.js").PodCount} PodCount */

/** Words for the stages of pods. @type {Record<string, string>} */
const STAGES = { notCreated: "not created", permit: "at Permit", binding: "being bound", notReady: "not ready" };

/**
 * @param {string} type as kubectl takes it
 * @param {string} namespace
 * @param {string} name
 */
export function objectPanel(type, namespace, name) {
  return panel({ type, namespace, name }, `${type} ${namespace}/${name}`);
}

/**
 * Pods by their labels.
 * @param {string} selector as kubectl takes it
 * @param {string} namespace "" for all
 */
export function selectionPanel(selector, namespace) {
  const where = namespace ? { namespace } : { allNamespaces: true };
  return panel({ selector, ...where }, `pods ${selector}`);
}

/** @param {import("./types.js").ObjectQuery} query @param {string} title */
function panel(query, title) {
  const { body, trouble } = askedAbout(query);
  return html`<section class="object" aria-labelledby="object">
    <h2 id="object" class="name">${title}</h2>
    ${body ? explained(body.explanation) : nothing}
    ${trouble ? html`<p class="empty" role="status">${trouble}</p>` : nothing}
    ${body || trouble ? nothing : html`<p class="empty busy" role="status">Asking the scheduler ...</p>`}
  </section>`;
}

/** @param {ObjectExplanation} told */
function explained({ sentence, counts, suggestions, notes }) {
  return html`
    <p class="sentence">${sentence}</p>
    ${notes.map((each) => html`<p class="quiet">${each}</p>`)}
    ${
      suggestions.length
        ? html`<h3>What would help; each was tried</h3>
            <ul class="suggestions">
              ${suggestions.map(
                (each) => html`<li>
                  <span>${each.text}</span>
                  <span class="quiet">helps ${each.helps} of ${count(each.of, "pod")}</span>
                  ${each.command ? html`<pre>${each.command}</pre>` : nothing}
                </li>`,
              )}
            </ul>`
        : nothing
    }
    ${counts.length ? stages(counts) : nothing}
  `;
}

/** @param {PodCount[]} counts */
function stages(counts) {
  return table(
    "Pods by stage",
    ["Pods", "Stage", "One of them", "Why"],
    counts.map((each) => {
      const [namespace, name] = each.example.split("/");
      return html`<tr>
        <td class="figure">${each.pods}</td>
        <th scope="row">${STAGES[each.stage] ?? each.stage}</th>
        <td>${name ? html`<a href=${podLink({ namespace, name })}>${name}</a>` : "-"}</td>
        <td class="reason">${each.cause || "-"}</td>
      </tr>`;
    }),
  );
}
