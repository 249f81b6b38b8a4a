import { Section } from "../../components/page";
import { choose, theme, type Theme } from "../../browser/theme";

const THEMES: { value: Theme; label: string }[] = [
  { value: "system", label: "System" },
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
];

/** Stored in this browser. */
export function ThemePart() {
  return (
    <Section title="Theme">
      <fieldset class="card settings-theme">
        <legend class="for-readers">Theme of this browser</legend>
        {THEMES.map(({ value, label }) => (
          <label key={value} class="checkbox">
            <input type="radio" name="theme" checked={theme.value === value} onChange={() => choose(value)} />
            <span>{label}</span>
          </label>
        ))}
      </fieldset>
    </Section>
  );
}
