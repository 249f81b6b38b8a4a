export const help = {
  title: "Query",
  text: [
    "Query the pipeline's tables with SQL. A query is a single SELECT on the tables as of the last successful run. Queries are read-only.",
    "Run query runs the whole text or the selection. Cancel stops a running query. Queries continue when you leave the page.",
    "The result shows up to 10,000 rows. Download all rows as CSV, Parquet or JSON.",
    "Chart draws the result. Choose a measure, a time unit or a column to split by, then add the chart to a dashboard. Columns shows nulls, ranges and the distribution of each column.",
    "Tables lists tables and columns; click a name to insert it at the cursor. Saved lists the queries shared by everyone on this pipeline. History lists the last 100 queries of this browser.",
    "Each saved query has its own URL to share.",
  ],
};
