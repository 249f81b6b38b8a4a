/** Matches globs for display; the service has the final say. */
function translated(glob: string): string {
  let out = "";
  let depth = 0;
  for (let at = 0; at < glob.length; at += 1) {
    const sign = glob[at] ?? "";
    if (sign === "*") {
      const crossing = glob[at + 1] === "*";
      if (!crossing) out += "[^/]*";
      else if (glob[at + 2] === "/") {
        out += "(?:.*/)?";
        at += 2;
      } else {
        out += ".*";
        at += 1;
      }
    } else if (sign === "?") out += "[^/]";
    else if (sign === "[") {
      const end = glob.indexOf("]", at + 2);
      if (end < 0) return "(?!)";
      out += `[${glob
        .slice(at + 1, end)
        .replace(/^!/, "^")
        .replaceAll("\\", "\\\\")
        .replaceAll("[", "\\[")
        .replaceAll("]", "\\]")}]`;
      at = end;
    } else if (sign === "{") {
      depth += 1;
      out += "(?:";
    } else if (sign === "}" && depth > 0) {
      depth -= 1;
      out += ")";
    } else if (sign === "," && depth > 0) out += "|";
    else out += sign.replace(/[\\^$.|+()[\]{}]/, "\\$&");
  }
  return depth === 0 ? out : "(?!)";
}

function patternOf(glob: string): RegExp {
  try {
    return new RegExp(`^${translated(glob)}$`, "u");
  } catch {
    return /(?!)/;
  }
}

/** A glob that matches this key alone. */
export const exactGlob = (key: string): string => key.replace(/[*?[\]{}]/g, "[$&]").replaceAll("!", "{!}");

/** The key of a glob of one key; undefined for others. */
export function keyOfExact(glob: string): string | undefined {
  const key = glob.replace(/\[([*?[\]{}])\]/g, "$1").replaceAll("{!}", "!");
  return exactGlob(key) === glob ? key : undefined;
}

/** Whether a glob names files that are left out. */
export const leavesOut = (glob: string): boolean => glob.startsWith("!");

/** Matches keys relative to the pipeline's folder; those that a glob after `!` matches are left out. */
export function matcher(globs: readonly string[]): (key: string) => boolean {
  const read = globs.filter((glob) => !leavesOut(glob)).map(patternOf);
  const out = globs.filter(leavesOut).map((glob) => patternOf(glob.slice(1)));
  return (key) =>
    !key.endsWith("/") && read.some((pattern) => pattern.test(key)) && !out.some((pattern) => pattern.test(key));
}
