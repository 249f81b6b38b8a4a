import { counted } from "../format/number";

/** `Dashboard Sales is broken`. */
export const brokenText = (broken: readonly { title: string }[]): string =>
  broken.length === 1
    ? `Dashboard ${broken[0]?.title ?? ""} is broken`
    : `${counted(broken.length, "dashboard")} are broken`;
