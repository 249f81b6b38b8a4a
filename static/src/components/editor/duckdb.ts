/** DuckDB's functions that queries over tables use most, with their arguments and what they give. */
import type { Completion } from "@codemirror/autocomplete";

/** `name(arguments): what it gives`, a line each. */
const FUNCTIONS = `
count(x): rows, or those where x isn't null
sum(x): the sum
avg(x): the mean
min(x): the least
max(x): the greatest
median(x): the middle value
mode(x): the most frequent value
stddev(x): the standard deviation of a sample
variance(x): the variance of a sample
quantile_cont(x, share): the quantile, interpolated
quantile_disc(x, share): the quantile, one of the values
approx_count_distinct(x): about how many different values
approx_quantile(x, share): about the quantile
arg_max(x, by): x where by is greatest
arg_min(x, by): x where by is least
any_value(x): the first value that isn't null
first(x): the first value
last(x): the last value
bool_and(x): whether all are true
bool_or(x): whether any is true
list(x): all values as a list
string_agg(x, separator): all values as one text
histogram(x): a map of values and how often each is there
corr(y, x): the correlation
regr_slope(y, x): the slope of the regression line
regr_intercept(y, x): where the regression line begins
row_number() OVER (): the number of the row
rank() OVER (): the rank, with gaps
dense_rank() OVER (): the rank, without gaps
ntile(n) OVER (): which of n parts of equal size
lag(x, rows): x some rows before
lead(x, rows): x some rows after
first_value(x) OVER (): x of the first row of the frame
last_value(x) OVER (): x of the last row of the frame
date_trunc(part, x): x cut to the part: 'day', 'month', …
date_part(part, x): the part as a number
date_diff(part, from, to): how many boundaries of the part lie between
date_sub(part, from, to): how many whole parts lie between
date_add(x, interval): x and an interval
extract(part FROM x): the part as a number
time_bucket(width, x): the beginning of the bucket of this width
strftime(x, format): a time as text
strptime(text, format): a text as a time
try_strptime(text, format): a text as a time, or null
make_date(year, month, day): a date
make_timestamp(year, month, day, hour, minute, seconds): a timestamp
epoch(x): seconds since 1970
epoch_ms(x): milliseconds since 1970, or the time of them
to_timestamp(seconds): a time from seconds since 1970
year(x): the year
quarter(x): the quarter, 1 to 4
month(x): the month, 1 to 12
week(x): the ISO week
day(x): the day of the month
dayofweek(x): the day of the week, 0 is Sunday
dayofyear(x): the day of the year
dayname(x): the day's name in English
monthname(x): the month's name in English
hour(x): the hour
minute(x): the minute
second(x): the second
last_day(x): the last day of the month
age(x, y): the interval between
today(): today's date
now(): the time at which the query began
coalesce(x, y): the first that isn't null
ifnull(x, y): x, or y where x is null
nullif(x, y): null where x equals y, else x
greatest(x, y): the greatest
least(x, y): the least
if(condition, x, y): x where the condition is true, else y
cast(x AS type): x as the type
try_cast(x AS type): x as the type, or null
typeof(x): the type's name
abs(x): without its sign
round(x, digits): rounded
floor(x): the whole number below
ceil(x): the whole number above
trunc(x): without the fraction
sign(x): -1, 0 or 1
sqrt(x): the square root
pow(x, y): x to the power of y
exp(x): e to the power of x
ln(x): the natural logarithm
log(x): the logarithm to base 10
log2(x): the logarithm to base 2
random(): a number from 0 to 1
range(from, to, step): a list of numbers, the end left out
generate_series(from, to, step): a list of numbers, the end included
length(x): characters of a text, items of a list
lower(x): in small letters
upper(x): in capital letters
trim(x): without blanks around it
ltrim(x): without blanks before it
rtrim(x): without blanks after it
lpad(x, length, fill): filled up at the left
rpad(x, length, fill): filled up at the right
left(x, n): the first n characters
right(x, n): the last n characters
substring(x, from, length): a part of a text
replace(x, what, by): with what replaced
split_part(x, separator, n): the nth part
string_split(x, separator): the parts as a list
starts_with(x, what): whether it begins so
ends_with(x, what): whether it ends so
contains(x, what): whether it is in there
strpos(x, what): where it is, 0: nowhere
concat(x, y): one after the other
concat_ws(separator, x, y): one after the other, with something between
format(pattern, x): a text with values put in
printf(pattern, x): a text with values put in
regexp_matches(x, pattern): whether the pattern is in there
regexp_extract(x, pattern, group): what the pattern finds
regexp_replace(x, pattern, by): with what the pattern finds replaced
regexp_split_to_array(x, pattern): the parts as a list
levenshtein(x, y): how many edits apart
jaro_winkler_similarity(x, y): how alike, 0 to 1
md5(x): the MD5 hash
hash(x): a hash as a number
list_value(x, y): a list
list_contains(list, x): whether x is in it
list_distinct(list): different values
list_sort(list): sorted
list_aggregate(list, name): an aggregate over the list
unnest(list): a row for each item
array_length(list): how many items
json_extract(x, path): a part of JSON
json_extract_string(x, path): a part of JSON as text
struct_pack(name := x): a struct
map_keys(map): the keys as a list
`;

export const functions: Completion[] = FUNCTIONS.trim()
  .split("\n")
  .map((line) => {
    const at = line.indexOf("): ") + 1 || line.indexOf(": ");
    const [signature, info] = [line.slice(0, at), line.slice(at + 2)];
    const label = signature.slice(0, signature.indexOf("("));
    return { label, type: "function", detail: signature.slice(label.length), info, boost: -10 };
  });
