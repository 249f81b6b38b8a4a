import { useSearchParams } from "wouter-preact";

type Put = (name: string, value: string) => void;

/** What the address says after its `?`, and what puts a value there; an empty one is none. Back doesn't undo it. */
export function useAddressParams(): [URLSearchParams, Put] {
  const [params, setParams] = useSearchParams();
  const put = (name: string, value: string) =>
    setParams(
      (before) => {
        const after = new URLSearchParams(before);
        if (value) after.set(name, value);
        else after.delete(name);
        return after;
      },
      { replace: true },
    );
  return [params, put];
}
