import { useSearchParams } from "wouter-preact";

type Put = (name: string, value: string) => void;

/** The URL's query parameters and a setter, which removes empty values and adds no history entry. */
export function useQueryParams(): [URLSearchParams, Put] {
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
