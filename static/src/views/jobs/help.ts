export const help = {
  title: "Jobs",
  text: [
    "A job is one run of the pipeline. It reads new and changed CSVs and rebuilds the partitions that they contribute to. A run starts 5 seconds after the last upload.",
    "Select a job to see the row counts of each file. Every row that is read is written, rejected or filtered.",
    "A failed run changes no tables. Its details show the cause, the location and how to fix it. Retry after fixing the problem.",
    "A clean run rebuilds every table and removes rows whose CSV is gone.",
  ],
};
