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
        .replaceAll("[", "\\[")}]`;
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

/** Matches keys relative to the pipeline's folder. */
export function matcher(globs: string[]): (key: string) => boolean {
  const patterns = globs.map((glob) => {
    try {
      return new RegExp(`^${translated(glob)}$`, "u");
    } catch {
      return /(?!)/;
    }
  });
  return (key) => !key.endsWith("/") && patterns.some((pattern) => pattern.test(key));
}
