export const help = {
  title: "Query",
  text: [
    "Ask the pipeline's tables in SQL. A query is one SELECT; it reads the tables as the last run left them and changes nothing.",
    "Run takes the whole text, or what is selected. Cancel ends a query that takes too long; leaving the view doesn't.",
    "The result shows up to 10,000 rows. Download gives all of them, as CSV, Parquet or JSON.",
    "Tables lists what can be asked: a click on a name puts it at the cursor. History keeps the last 100 queries of this browser, Saved those that everybody who works on this pipeline may use.",
    "Saved queries have an address of their own, so that they can be shared.",
  ],
};
