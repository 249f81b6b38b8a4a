export const help = {
  title: "Data",
  text: [
    "The tables that the last run wrote. Choose one at the left; its rows come from the service as you scroll.",
    "Click a header to sort, with Shift to sort by several columns. The field below a header filters by that column; its sign says how values are compared. Order and filters are part of the address, so a link shows the same rows.",
    "In the grid, arrows move from cell to cell, Page Up and Page Down by a page, Ctrl or Cmd with Home and End to the first and last cell. Enter opens the row with all its fields and where it comes from. Ctrl or Cmd with C copies the cell; the context menu copies the row. Ctrl or Cmd with Shift and an arrow makes the column wider or narrower.",
    "Partitions lists the files of the table, Sources what became of each CSV's rows: read is written plus rejected plus filtered. Rejected shows each refused row with the reason and leads to its line in the lake.",
  ],
};
