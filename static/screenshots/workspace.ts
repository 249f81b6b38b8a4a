/** A realistic workspace: the sample, orders with some rejected rows and a history, a pipeline that fails. */
import { expect } from "@playwright/test";
import type { Api } from "../tests/support/test";

export interface Furnished {
  /** A CSV outside of all pipelines. */
  looseKey: string;
  ordersFile: string;
  flightsJob: string;
  failedJob: string;
}

const CITIES = ["Lisbon", "Tartu", "Graz", "Ghent", "Cork", "Lund"];
const MONTHS = 8;
const ORDERS = 400;

/** Deterministic. */
function orders(month: number): string {
  const lines = ["order_id;ordered_at;city;items;amount"];
  for (let n = 0; n < ORDERS; n += 1) {
    const seed = (month * 7919 + n * 104_729) % 99_991;
    const day = String((seed % 28) + 1).padStart(2, "0");
    const amount = seed % 97 === 0 ? "n.n." : ((seed % 20_000) / 100).toFixed(2).replace(".", ",");
    const city = CITIES[seed % CITIES.length] ?? "";
    lines.push(
      `${month * 10_000 + n};${day}.${String(month).padStart(2, "0")}.2024;${city};${(seed % 5) + 1};${amount}`,
    );
  }
  return `${lines.join("\n")}\n`;
}

const ORDERS_CONFIG = {
  version: 1,
  title: "Web shop orders",
  mappings: [
    {
      table: "orders",
      files: ["2024/*.csv"],
      csv: { delimiter: ";", decimal: "," },
      columns: [
        { name: "order_id", type: "int64", nullable: false },
        { name: "ordered_at", type: "date", formats: ["%d.%m.%Y"] },
        { name: "city", type: "string" },
        { name: "items", type: "int32" },
        { name: "amount", type: "decimal(10,2)" },
      ],
      rejects: { max_rows: 100 },
      partition_by: [{ column: "ordered_at", transform: "month", name: "month" }],
    },
  ],
};

export async function furnish(api: Api): Promise<Furnished> {
  await api.sample();
  const first = await api.get<{ jobs: { job_id: string }[] }>("/api/p/flights/jobs");
  await api.pipeline("orders", ORDERS_CONFIG, { "2024/01.csv": orders(1) });
  for (let month = 2; month <= MONTHS; month += 1) {
    await api.upload(`pipelines/orders/2024/${String(month).padStart(2, "0")}.csv`, orders(month));
    await api.run("orders");
  }
  await api.post("/api/pipelines", { slug: "blank", template: "blank" });
  await api.post("/api/pipelines", { slug: "broken", template: "blank" });
  const broken = {
    ...ORDERS_CONFIG,
    title: "Sensors",
    mappings: [{ ...ORDERS_CONFIG.mappings[0], columns: [{ name: "order_id", type: "int65" }] }],
  };
  await api.put("/api/p/broken/config", broken);
  await api.upload("pipelines/broken/2024/01.csv", orders(1));
  await api.run("broken");
  const failed = await api.get<{ jobs: { job_id: string; status: string }[] }>("/api/p/broken/jobs");
  await api.upload(
    "incoming/customers.csv",
    "customer;since;spent;active\n1;03.05.2021;1.234,50;yes\n2;17.11.2022;88,00;no\n3;not known;12,75;yes\n4;01.02.2023;;yes\n",
  );
  await api.put("/api/settings", { display_name: "Ada", workspace_name: "Lakemill", starred: ["flights", "orders"] });
  const [flightsJob, failedJob] = [first.jobs[0]?.job_id, failed.jobs[0]?.job_id];
  expect(flightsJob).toBeDefined();
  expect(failedJob).toBeDefined();
  return {
    looseKey: "incoming/customers.csv",
    ordersFile: "pipelines/orders/2024/01.csv",
    flightsJob: flightsJob ?? "",
    failedJob: failedJob ?? "",
  };
}
