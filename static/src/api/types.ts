/** Names for the API's types, which are generated from the service's OpenAPI document (`scripts/ui types`). */
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Job = Schemas["Job"];
export type JobStatus = Schemas["JobStatus"];
export type Stage = Schemas["Stage"];
export type Progress = Schemas["Progress"];
export type RunResult = Schemas["RunResult"];
export type TableResult = Schemas["TableResult"];
export type SourceResult = Schemas["SourceResult"];
export type RunError = Schemas["RunError"];
export type PipelineDetail = Schemas["Detail"];
export type Table = Schemas["Table"];
export type ConfigStatus = Schemas["ConfigStatus"];
export type PipelineStatus = Schemas["PipelineStatus"];
export type TableStatus = Schemas["TableStatus"];
export type Column = Schemas["Column"];
export type ResultColumn = Schemas["ResultColumn"];
export type ColumnStats = Schemas["ColumnStats"];
export type QueryAnswer = Schemas["QueryAnswer"];
export type SavedQuery = Schemas["SavedQuery"];
export type LineageSource = Schemas["Source"];
export type Commit = Schemas["Commit"];
export type CommitChanges = Schemas["CommitChanges"];
export type TableFile = Schemas["TableFile"];
export type LakeLevel = Schemas["Level"];
export type LakeFile = Schemas["File"];
export type About = Schemas["About"];
export type Ready = Schemas["Ready"];
export type Settings = Schemas["Settings"];
export type Inferred = Schemas["Inferred"];
export type ColumnProposal = Schemas["ColumnProposal"];
export type Previewed = Schemas["Previewed"];
export type ConfigSaved = Schemas["Saved"];
export type ConfigRename = Schemas["ConfigRename"];
export type ConfigVersion = Schemas["ConfigVersion"];
export type ConfigProblem = Schemas["Problem"];
export type DashboardEntry = Schemas["DashboardEntry"];
export type DashboardList = Schemas["DashboardList"];
export type DashboardProblem = Schemas["DashboardProblem"];
export type DashboardVerdict = Schemas["DashboardVerdict"];
export type DataAnswer = Schemas["DataAnswer"];
export type PanelResult = Schemas["PanelResult"];
export type PanelRows = Schemas["PanelRows"];
export type ErrorBody = Schemas["Error"];

/** A cell value. Integers beyond 2^53, decimals and times are strings. */
export type Cell = string | number | boolean | null | Cell[] | { [key: string]: Cell };
export type Row = Cell[];
