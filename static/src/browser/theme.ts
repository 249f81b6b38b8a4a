import { signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

/** Also read by `public/theme.js` before the first paint. */
const KEY = "lakemill.theme";

function kept(): Theme {
  const value = document.documentElement.dataset.theme;
  return value === "light" || value === "dark" ? value : "system";
}

const dark = window.matchMedia("(prefers-color-scheme: dark)");

/** The user's choice, per browser. */
export const theme = signal<Theme>(kept());
/** The effective theme; charts and editors redraw when it changes. */
export const shownTheme = signal<"light" | "dark">(shown());

function shown(): "light" | "dark" {
  if (theme.value !== "system") return theme.value;
  return dark.matches ? "dark" : "light";
}

dark.addEventListener("change", () => {
  shownTheme.value = shown();
});

export function choose(chosen: Theme): void {
  theme.value = chosen;
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  try {
    if (chosen === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, chosen);
  } catch {
    // A browser that keeps nothing has the theme until the page is left.
  }
  shownTheme.value = shown();
}
