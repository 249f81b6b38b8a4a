/** Common DuckDB functions with their arguments and descriptions. */
import type { Completion } from "@codemirror/autocomplete";

/** `name(arguments): description`, one per line. */
const FUNCTIONS = `
count(x): number of rows, or of non-null values
sum(x): sum of the values
avg(x): average of the values
min(x): smallest value
max(x): largest value
median(x): median of the values
mode(x): most frequent value
stddev(x): sample standard deviation
variance(x): sample variance
quantile_cont(x, fraction): interpolated quantile
quantile_disc(x, fraction): discrete quantile
approx_count_distinct(x): approximate number of distinct values
approx_quantile(x, fraction): approximate quantile
arg_max(x, by): x of the row with the largest by
arg_min(x, by): x of the row with the smallest by
any_value(x): first non-null value
first(x): first value
last(x): last value
bool_and(x): true if all values are true
bool_or(x): true if any value is true
list(x): values as a list
string_agg(x, separator): values concatenated with a separator
histogram(x): map of values and their counts
corr(y, x): correlation coefficient
regr_slope(y, x): slope of the regression line
regr_intercept(y, x): intercept of the regression line
row_number() OVER (): number of the row
rank() OVER (): rank with gaps
dense_rank() OVER (): rank without gaps
ntile(n) OVER (): bucket number from 1 to n
lag(x, rows): x of an earlier row
lead(x, rows): x of a later row
first_value(x) OVER (): x of the first row in the frame
last_value(x) OVER (): x of the last row in the frame
date_trunc(part, x): truncate to a precision: 'day', 'month', …
date_part(part, x): date part as a number
date_diff(part, from, to): number of part boundaries between the dates
date_add(x, interval): add an interval
extract(part FROM x): date part as a number
time_bucket(width, x): start of the bucket that contains x
strftime(x, format): format a date or time
strptime(text, format): parse a timestamp
try_strptime(text, format): parse a timestamp, or null
make_date(year, month, day): date from its parts
epoch(x): seconds since 1970
epoch_ms(x): convert to or from milliseconds since 1970
to_timestamp(seconds): timestamp from seconds since 1970
year(x): year
quarter(x): quarter, 1 to 4
month(x): month, 1 to 12
week(x): ISO week
day(x): day of the month
dayofweek(x): day of the week, Sunday is 0
dayname(x): name of the weekday
monthname(x): name of the month
hour(x): hour
minute(x): minute
second(x): second
last_day(x): last day of the month
age(x, y): interval between two timestamps
today(): current date
now(): start time of the query
coalesce(x, y): first non-null argument
nullif(x, y): null if x equals y, else x
greatest(x, y): largest argument
least(x, y): smallest argument
if(condition, x, y): x if the condition is true, else y
cast(x AS type): convert to a type
try_cast(x AS type): convert to a type, or null
typeof(x): name of the type
abs(x): absolute value
round(x, digits): round to a number of digits
floor(x): round down
ceil(x): round up
trunc(x): remove the fraction
sqrt(x): square root
pow(x, y): x raised to y
ln(x): natural logarithm
log(x): base-10 logarithm
range(from, to, step): list of numbers without the end
length(x): number of characters or list items
lower(x): convert to lower case
upper(x): convert to upper case
trim(x): remove leading and trailing spaces
lpad(x, length, fill): pad on the left
rpad(x, length, fill): pad on the right
left(x, n): first n characters
right(x, n): last n characters
substring(x, from, length): part of a string
replace(x, old, new): replace a substring
split_part(x, separator, n): nth part after splitting
string_split(x, separator): split into a list
starts_with(x, prefix): true if x starts with prefix
ends_with(x, suffix): true if x ends with suffix
contains(x, search): true if x contains search
strpos(x, search): position of search, 0 if not found
concat(x, y): concatenate strings
concat_ws(separator, x, y): concatenate with a separator
format(pattern, x): format values
regexp_matches(x, pattern): true if x contains a match
regexp_extract(x, pattern, group): first match of the pattern
regexp_replace(x, pattern, new): replace the first match
levenshtein(x, y): edit distance
md5(x): MD5 hash
list_contains(list, x): true if the list contains x
list_distinct(list): distinct values
list_sort(list): sort a list
unnest(list): one row per item
array_length(list): number of items
json_extract(x, path): extract JSON
json_extract_string(x, path): extract JSON as text
struct_pack(name := x): create a struct
map_keys(map): list of keys
`;

export const functions: Completion[] = FUNCTIONS.trim()
  .split("\n")
  .map((line) => {
    const at = line.indexOf("): ") + 1 || line.indexOf(": ");
    const [signature, info] = [line.slice(0, at), line.slice(at + 2)];
    const label = signature.slice(0, signature.indexOf("("));
    return { label, type: "function", detail: signature.slice(label.length), info, boost: -10 };
  });
