//! Converts the rule at the end of TZif data (a POSIX `TZ` string) to ICU's form.

/// Start and end of daylight-saving time in the form of ICU's `SimpleTimeZone`: month, day, weekday, time in s, kind of
/// time, twice, then the saving in s.
pub type DaylightRule = [i32; 11];

/// The rule after the last transition, unless the offset is constant.
#[derive(Debug, PartialEq, Eq)]
pub enum YearlyRule {
    Rule {
        standard: i32,
        rule: DaylightRule,
    },
    /// A rule that ICU can't represent.
    Unsupported,
}

impl YearlyRule {
    /// `None`: the last offset stays.
    pub fn of(tzif: &[u8]) -> Option<Self> {
        let text = tzif.strip_suffix(b"\n")?;
        let at = text.iter().rposition(|b| *b == b'\n')?;
        let text = std::str::from_utf8(&text[at + 1..]).ok()?;
        let (offsets, rules) = text.split_once(',')?;
        Some(yearly(offsets, rules).unwrap_or(Self::Unsupported))
    }
}

fn yearly(offsets: &str, rules: &str) -> Option<YearlyRule> {
    let (_, rest) = name(offsets)?;
    let (standard, rest) = offset(rest)?;
    let (_, rest) = name(rest)?;
    let daylight = if rest.is_empty() { standard + 3_600 } else { offset(rest).filter(|(_, rest)| rest.is_empty())?.0 };
    let (start, end) = rules.split_once(',')?;
    let (start, end) = (day(start)?, day(end)?);
    // If winter time is the exception (Dublin), ICU treats summer time as the exception instead.
    let (standard, saving, [start, end]) = match daylight - standard {
        saving @ 1.. => (standard, saving, [start, end]),
        saving => (daylight, -saving, [end, start]),
    };
    let mut rule: DaylightRule = [0; 11];
    rule[..5].copy_from_slice(&start);
    rule[5..10].copy_from_slice(&end);
    rule[10] = saving;
    Some(YearlyRule::Rule { standard, rule })
}

/// The name of an offset (letters, or anything within `<>`), and the rest.
fn name(text: &str) -> Option<(&str, &str)> {
    match text.strip_prefix('<') {
        Some(quoted) => quoted.split_once('>'),
        None => Some(text.split_at(text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len()))),
    }
}

/// Seconds east of UTC, which POSIX counts west, and the rest.
fn offset(text: &str) -> Option<(i32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '+' | '-' | ':')).unwrap_or(text.len());
    let (time, rest) = text.split_at(end);
    Some((-seconds(time)?, rest))
}

/// `[+-]hh[:mm[:ss]]` in seconds.
fn seconds(text: &str) -> Option<i32> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(text) => (-1, text),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut parts = text.split(':');
    let mut part = || parts.next().map_or(Some(0), |part| part.parse::<i32>().ok().filter(|n| *n < 1_000));
    Some(sign * (part()? * 3_600 + part()? * 60 + part()?))
}

/// `Mm.w.d[/time]`: weekday `d` (0: Sunday) of week `w` (5: the last) of month `m`, on the clock before the change.
fn day(text: &str) -> Option<[i32; 5]> {
    const WALL_CLOCK: i32 = 0;
    const DAY: i32 = 86_400;
    const MONTHS: [i32; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let (date, time) = text.split_once('/').unwrap_or((text, "2"));
    let time = seconds(time)?;
    let mut parts = date.strip_prefix('M')?.split('.').map(|part| part.parse::<i32>().ok());
    let (month, week, weekday) = (parts.next()?? - 1, parts.next()??, parts.next()??);
    let days_of_month = *MONTHS.get(usize::try_from(month).ok()?)?;
    // Times outside of the day shift the day; ICU allows the end of the last day.
    let (shift, time) = match (week, time) {
        (5, DAY) => (0, DAY),
        _ => (time.div_euclid(DAY), time.rem_euclid(DAY)),
    };
    let icu_weekday = (weekday + shift).rem_euclid(7) + 1;
    let (day, icu_weekday) = match week {
        5 if shift == 0 => (-1, icu_weekday),
        // In a leap year another day would be the last.
        5 if shift < 0 && month != 1 => (-(days_of_month + shift), -icu_weekday),
        1..=4 => {
            let first = 1 + 7 * (week - 1) + shift;
            ((1..=days_of_month - 6).contains(&first).then_some(first)?, -icu_weekday)
        }
        _ => return None,
    };
    Some([month, day, icu_weekday, time, WALL_CLOCK])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<YearlyRule> {
        YearlyRule::of(format!("TZif\n{text}\n").as_bytes())
    }

    #[test]
    fn rules_are_those_of_icu() {
        let rule = |standard, rule| Some(YearlyRule::Rule { standard, rule });
        assert_eq!(of("<+01>-1"), None);
        assert_eq!(of("CET-1CEST,M3.5.0,M10.5.0/3"), rule(3_600, [2, -1, 1, 7_200, 0, 9, -1, 1, 10_800, 0, 3_600]));
        assert_eq!(of("EST5EDT,M3.2.0,M11.1.0"), rule(-18_000, [2, 8, -1, 7_200, 0, 10, 1, -1, 7_200, 0, 3_600]));
        // Winter is the exception.
        assert_eq!(of("IST-1GMT0,M10.5.0,M3.5.0/1"), rule(0, [2, -1, 1, 3_600, 0, 9, -1, 1, 7_200, 0, 3_600]));
        // An hour before the day, and hours after it.
        assert_eq!(of("<-02>2<-01>,M3.5.0/-1,M10.5.0/0"), rule(-7_200, [2, -30, -7, 82_800, 0, 9, -1, 1, 0, 0, 3_600]));
        assert_eq!(
            of("EET-2EEST,M3.4.4/50,M10.4.4/50"),
            rule(7_200, [2, 24, -7, 7_200, 0, 9, 24, -7, 7_200, 0, 3_600])
        );
        assert_eq!(
            of("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0"),
            rule(37_800, [9, 1, -1, 7_200, 0, 3, 1, -1, 7_200, 0, 1_800])
        );
        // The end of a day that could be the last of its month.
        assert_eq!(of("EET-2EEST,M4.5.5/0,M10.5.4/24"), rule(7_200, [3, -1, 6, 0, 0, 9, -1, 5, 86_400, 0, 3_600]));
        assert_eq!(of("EST5EDT,J60,J300"), Some(YearlyRule::Unsupported));
        assert_eq!(of("EST5EDT,M2.5.0/-1,M11.1.0"), Some(YearlyRule::Unsupported));
    }
}
