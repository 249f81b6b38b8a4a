export const help = {
  title: "Data",
  text: [
    "The tables of the pipeline as of the last successful run. Select one on the left; rows load as you scroll.",
    "Click a header to sort; hold Shift to sort by several columns. Filter with the field below a header; its symbol selects the operator. Sort order and filters are part of the URL, so a link shows the same rows.",
    "In the grid, use the arrow keys to move between cells, Page Up and Page Down to move by a page, and Ctrl or Cmd with Home or End to go to the first or last cell. Enter opens the row with all fields and its lineage. Ctrl or Cmd with C copies the cell; the context menu copies the row. Ctrl or Cmd with Shift and an arrow key resizes the column.",
    "Chart draws the rows that the filters keep; choose measure, time unit and split, then add it to a dashboard. Schema shows nulls, ranges and the distribution of each column. Its pencil, and the context menu of a header, change a column's type, formats and nulls.",
    "Partitions lists the files of the table. Sources lists the CSVs with their row counts: read = written + rejected + filtered. Rejected lists rejected rows with the reason and a link to the line in the CSV.",
  ],
};
