import { queryOptions } from "@tanstack/preact-query";
import { sendRaw } from "../../api/client";

/** The JSON Schema of configs; it changes with the service's version alone. */
export const schemaQuery = () =>
  queryOptions({
    queryKey: ["schemas", "pipeline"],
    queryFn: async ({ signal }) => (await (await sendRaw("/schemas/pipeline.json", { signal })).json()) as unknown,
    staleTime: Infinity,
  });
