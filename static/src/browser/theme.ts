import { signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

/** Where `public/theme.js` looks before anything is drawn. */
const KEY = "lakemill.theme";

function kept(): Theme {
  const value = document.documentElement.dataset.theme;
  return value === "light" || value === "dark" ? value : "system";
}

const dark = window.matchMedia("(prefers-color-scheme: dark)");

/** What the person chose in this browser. */
export const theme = signal<Theme>(kept());
/** What is shown. Charts and editors draw anew when it changes. */
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
