// @ts-check
/** Rows of pods of equal owner, group and reason become one, as the commands fold them. */

/**
 * @template {{namespace: string, name: string, uid: string, owner?: string, group?: string, reason?: string}} T
 * @param {T[]} rows
 * @param {(row: T) => string} apart what else keeps rows apart
 * @returns {{key: string, rows: T[]}[]} in the order of the first row of each
 */
export function folded(rows, apart = () => "") {
  /** @type {Map<string, {key: string, rows: T[]}>} */
  const found = new Map();
  for (const row of rows) {
    const alike = row.owner || row.group;
    const key = JSON.stringify(
      alike
        ? [row.namespace, row.owner ?? "", row.group ?? "", row.reason ?? "", apart(row)]
        : [row.uid, row.reason ?? "", apart(row)],
    );
    const known = found.get(key);
    if (known) known.rows.push(row);
    else found.set(key, { key, rows: [row] });
  }
  return [...found.values()];
}

/** The name of rows of one fold. @param {{namespace: string, name: string, owner?: string, group?: string}} row */
export function foldName(row) {
  return row.group ? `group ${row.group}` : `${row.namespace}/${row.owner || row.name}`;
}
