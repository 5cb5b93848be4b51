// @ts-check
/** The frame of the page: head, ways to the views, the view itself. */

import { html, nothing, render } from "../vendor/lit-html/lit-html.js";
import { clusterView } from "./cluster.js";
import { decisionsView } from "./decisions.js";
import { clock, count } from "./format.js";
import { podView } from "./pod.js";
import { queueView } from "./queue.js";
import { onRoute, parts } from "./route.js";
import { can, connect, onChange, said, store, waitingPods } from "./store.js";
import { timeView } from "./time.js";

const AGAIN_MILLISECONDS = 2000;

/** @type {Record<string, {title: string, view: () => unknown}>} */
const VIEWS = {
  cluster: { title: "Cluster", view: clusterView },
  overview: { title: "Overview", view: later(async () => (await import("./overview.js")).overviewView) },
  workloads: { title: "Workloads", view: later(async () => (await import("./workloads.js")).workloadsView) },
  queue: { title: "Queue", view: queueView },
  pod: { title: "Pod", view: podView },
  decisions: { title: "Decisions", view: decisionsView },
  groups: { title: "Groups and quotas", view: later(async () => (await import("./groups.js")).groupsView) },
  "what-if": { title: "What if", view: later(async () => (await import("./what_if.js")).whatIfView) },
  plugins: { title: "Plugins", view: later(async () => (await import("./plugins.js")).pluginsView) },
  time: { title: "Time", view: timeView },
};

/**
 * A view whose script is loaded when somebody goes there, so that the first picture waits for less.
 * @param {() => Promise<() => unknown>} load
 * @returns {() => unknown}
 */
function later(load) {
  let asked = false;
  let view = () => html`<p class="empty busy" role="status">Loading the view ...</p>`;
  return () => {
    if (asked) return view();
    asked = true;
    load().then(
      (loaded) => {
        view = /** @type {typeof view} */ (loaded);
        draw();
      },
      (error) => {
        asked = false;
        view = () => html`<p class="empty">The view cannot be loaded: ${said(error)}</p>`;
        setTimeout(draw, AGAIN_MILLISECONDS);
      },
    );
    return view();
  };
}

let drawn = 0;

/** Draws the page with the next frame. */
export function draw() {
  if (drawn) return;
  drawn = requestAnimationFrame(() => {
    drawn = 0;
    const root = document.getElementById("page");
    if (root) render(frame(), root);
  });
}

function frame() {
  const name = parts()[0] ?? "cluster";
  const known = VIEWS[name];
  document.title = `${known?.title ?? "No such view"} - moorage`;
  return html`
    <a class="skip" href="#view">To the view</a>
    <header>
      <p class="brand">moorage <span>${store.about?.title ?? ""}</span></p>
      <nav aria-label="Views">
        ${Object.entries(VIEWS)
          .filter(([each]) => each !== "time" || can("time"))
          .map(
            ([each, { title }]) =>
              html`<a href="/${each}" aria-current=${each === name ? "page" : nothing}>${title}</a>`,
          )}
      </nav>
      ${stateOf()}
    </header>
    ${rights()} ${trouble()}
    <main id="view" tabindex="-1">
      <h1>${known?.title ?? "No such view"}</h1>
      ${known ? (store.loaded ? known.view() : waiting()) : elsewhere()}
    </main>
  `;
}

function stateOf() {
  if (!store.loaded) return html`<p class="state" role="status">loading</p>`;
  const pending = waitingPods();
  const off = store.cut || store.trouble;
  const words = `${count(store.nodes.size, "node")}, ${count(pending, "pod")} waiting`;
  return html`<p class="state">
    <span>${words}</span>
    <span class=${off ? "dot bad" : "dot"}></span><span class="hidden">${off ? "not up to date" : "live"}</span>
    <time>${clock(store.time)}</time>
  </p>`;
}

function rights() {
  const text = store.about?.rights;
  return text ? html`<p class="rights" role="note">${text}</p>` : nothing;
}

function trouble() {
  if (store.cut) {
    return html`<p class="banner" role="alert">
      Not connected: ${store.cut}. What you see may be old; the page tries again by itself.
    </p>`;
  }
  if (store.trouble) {
    return html`<p class="banner" role="alert">
      The scheduler does not answer: ${store.trouble}. What you see may be old.
    </p>`;
  }
  if (store.loaded && !store.scheduling && !store.about?.watches) {
    return html`<p class="banner calm" role="status">
      This scheduler does not schedule: another replica holds the lease.
    </p>`;
  }
  return nothing;
}

function waiting() {
  return html`<p class="empty busy" role="status">Loading the cluster ...</p>`;
}

function elsewhere() {
  return html`<p class="empty">The views are listed above. <a href="/cluster">To the cluster</a></p>`;
}

onChange(draw);
onRoute(draw);
addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
addEventListener("moorage-draw", draw);
draw();
connect();
