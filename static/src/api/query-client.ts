import {
  QueryClient,
  type InvalidateOptions,
  type InvalidateQueryFilters,
  type QueryKey,
} from "@tanstack/preact-query";

/**
 * A `QueryClient` whose invalidation also restarts requests in flight.
 *
 * `QueryClient.invalidateQueries` keeps the first request of a query without data, whose response may be older than
 * the change.
 */
export class FreshQueryClient extends QueryClient {
  override async invalidateQueries<K extends QueryKey = QueryKey>(
    filters?: InvalidateQueryFilters<K>,
    options?: InvalidateOptions,
  ): Promise<void> {
    const inFlight = this.getQueryCache()
      .findAll({ ...filters, fetchStatus: "fetching" })
      .filter(({ state }) => state.data === undefined);
    await super.invalidateQueries(filters, options);
    if (inFlight.length === 0) return;
    await Promise.allSettled(inFlight.map((query) => Promise.resolve(query.promise)));
    await super.invalidateQueries({ predicate: (query) => inFlight.includes(query) }, options);
  }
}
