import { counted } from "../format/number";

/** `Dashboard sales is broken`. */
export const brokenText = (broken: string[]): string =>
  broken.length === 1 ? `Dashboard ${broken[0] ?? ""} is broken` : `${counted(broken.length, "dashboard")} are broken`;
