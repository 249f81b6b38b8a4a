/** Notifications sent to people. */
import { queryOptions, type QueryClient } from "@tanstack/preact-query";
import { api, ask } from "./client";
import { IDLE_POLL_MS, LIVE_MS } from "./queries";
import type { components } from "./schema";

export type NotificationPage = components["schemas"]["Notifications"];
export type NotificationRecord = components["schemas"]["NotificationRecord"];

const KEY = ["notifications"] as const;
const SHOWN = 20;

const isDueSoon = (page: NotificationPage | undefined) =>
  page?.notifications.some(({ due_at }) => due_at !== null && Date.parse(due_at ?? "") < Date.now() + 60_000);

/** The newest notifications; polled faster while one is due. */
export const notificationsQuery = () =>
  queryOptions({
    queryKey: KEY,
    queryFn: ({ signal }) => ask(api.GET("/api/notifications", { params: { query: { limit: SHOWN } }, signal })),
    refetchInterval: ({ state }) => (isDueSoon(state.data) ? LIVE_MS : IDLE_POLL_MS),
  });

/** Sends a test to all targets. @throws ApiFailure */
export async function sendTest(cache: QueryClient): Promise<void> {
  await ask(api.POST("/api/notifications/test"));
  await cache.invalidateQueries({ queryKey: KEY });
}
