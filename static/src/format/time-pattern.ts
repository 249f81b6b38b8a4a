/** Patterns of dates and times as people write them, such as `DD.MM.YYYY`. */

/** ISO 8601 among other formats, in the config. */
const ISO = "iso";
/** The same as people have it. */
export const ISO_WORDS = "ISO 8601";

const PART = /^(?:([-./: T,]+)|(YYYY|JJJJ)|(YY|JJ)|(DD|TT)|(HH?)|(Month)|(Mon)|(MM)|(SS?))/i;

const WORDS: Record<string, string> = {
  "%Y": "YYYY",
  "%y": "YY",
  "%m": "MM",
  "%d": "DD",
  "%H": "HH",
  "%M": "MM",
  "%S": "SS",
  "%b": "Mon",
  "%B": "Month",
};

/** The pattern as people write it; one that can't be written so stays as it is. */
export function patternOf(strftime: string): string {
  if (strftime === ISO) return ISO_WORDS;
  const words = strftime.replace(/%./g, (part) => WORDS[part] ?? part);
  return strftimeOf(words) === strftime ? words : strftime;
}

/** The strftime pattern; text that isn't such a pattern, or is strftime already, stays as it is. */
export function strftimeOf(text: string): string {
  if (text === ISO_WORDS) return ISO;
  let rest = text;
  let made = "";
  while (rest !== "") {
    // A T between date and time isn't one of a German day.
    const found = PART.exec(rest.replace(/^TT/i, "DD"));
    if (!found) return text;
    const [part, separator, year, short, day, hour, month, shortMonth, monthOrMinute] = found;
    // MM is the minute after an hour, and the month elsewhere.
    if (separator !== undefined) made += separator;
    else if (year !== undefined) made += "%Y";
    else if (short !== undefined) made += "%y";
    else if (day !== undefined) made += "%d";
    else if (hour !== undefined) made += "%H";
    else if (month !== undefined) made += "%B";
    else if (shortMonth !== undefined) made += "%b";
    else if (monthOrMinute !== undefined) made += /%H[:.]?$/.test(made) ? "%M" : "%m";
    else made += "%S";
    rest = rest.slice(part.length);
  }
  return made;
}
