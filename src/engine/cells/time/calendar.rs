//! Arithmetic of dates and times of day, on text of fixed form.

pub(super) const MICROS_PER_SECOND: i64 = 1_000_000;
pub(super) const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

/// Days since 1970-01-01 in the proleptic Gregorian calendar; `None` if there is no such date. `year` is 0 to 9999.
pub(super) fn days(year: u32, month: u32, day: u32) -> Option<i32> {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let last = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return None,
    };
    if day == 0 || day > last {
        return None;
    }
    // Years begin in March, so that the leap day is last; shifted by one era of 400 years, so that everything is
    // positive.
    let shifted = year + 400 - u32::from(month <= 2);
    let month_index = (month + 9) % 12;
    let day_of_year = (153 * month_index + 2) / 5 + day - 1;
    let since_era = shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + day_of_year;
    Some(since_era as i32 - 719_468 - 146_097)
}

/// The two digits at `at`.
#[inline(always)]
pub(super) fn two_digits(text: &[u8], at: usize) -> Option<u32> {
    let &[tens, ones] = text.get(at..)?.first_chunk::<2>()?;
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens <= 9 && ones <= 9).then(|| u32::from(tens * 10 + ones))
}

/// Microseconds since midnight; `None` for invalid times, including leap seconds.
#[inline(always)]
pub(super) fn clock(hour: u32, minute: u32, second: u32) -> Option<i64> {
    let fits = (hour < 24) & (minute < 60) & (second < 60);
    fits.then(|| i64::from(hour * 3600 + minute * 60 + second) * MICROS_PER_SECOND)
}

/// Reads `HH:MM:SS`.
#[inline(always)]
pub(super) fn clock8(text: &[u8; 8]) -> Option<i64> {
    let colons = u64::from_le_bytes(*b"\0\0:\0\0:\0\0");
    let zeros = u64::from_le_bytes(*b"00000000");
    let word = u64::from_le_bytes(*text);
    if word & u64::from_le_bytes(*b"\0\0\xFF\0\0\xFF\0\0") != colons {
        return None;
    }
    let word = word ^ colons ^ u64::from_le_bytes(*b"\0\x000\0\x000\0\0");
    if !super::super::word::all_digits8(word) {
        return None;
    }
    // Each byte is below 10, so tens and ones add up within their byte.
    let digits = word - zeros;
    let pairs = digits * 10 + (digits >> 8);
    clock(pairs as u8 as u32, (pairs >> 24) as u8 as u32, (pairs >> 48) as u8 as u32)
}

/// Caches the days of the last date by its text, since neighbours often share it.
#[derive(Debug, Clone, Default)]
pub(super) struct DateCache {
    text: [u8; Self::TEXT_BYTES_MAX],
    len: usize,
    days: i32,
}

impl DateCache {
    pub const TEXT_BYTES_MAX: usize = 16;

    /// The days of `text` (1 to 16 bytes), cached or read by `read`.
    #[inline(always)]
    pub fn get<E>(&mut self, text: &[u8], read: impl FnOnce() -> Result<i32, E>) -> Result<i32, E> {
        let known = match <&[u8; 10]>::try_from(text) {
            Ok(ten) => self.len == 10 && self.text.first_chunk() == Some(ten),
            Err(_) => self.text[..self.len] == *text,
        };
        if known {
            return Ok(self.days);
        }
        let days = read()?;
        if let Some(slot) = self.text.get_mut(..text.len()) {
            slot.copy_from_slice(text);
            (self.len, self.days) = (text.len(), days);
        }
        Ok(days)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{Datelike, NaiveDate};

    #[test]
    fn every_date_of_four_digit_years_agrees_with_chrono() {
        for year in (0..=9999u32).filter(|y| *y < 5 || y % 100 < 9 || *y > 9990) {
            for month in 0..=13 {
                for day in 0..=32 {
                    let expect = NaiveDate::from_ymd_opt(year as i32, month, day);
                    let expect = expect.map(|d| d.num_days_from_ce() - 719_163);
                    assert_eq!(days(year, month, day), expect, "{year}-{month}-{day}");
                }
            }
        }
    }

    #[test]
    fn times_are_read_up_to_the_last_second_of_the_day() {
        assert_eq!(clock8(b"00:00:00"), Some(0));
        assert_eq!(clock8(b"23:59:59"), Some(86_399 * MICROS_PER_SECOND));
        assert_eq!(clock8(b"12:34:56"), Some(45_296 * MICROS_PER_SECOND));
        for bad in [b"24:00:00", b"00:60:00", b"00:00:60", b"00-00:00", b"0a:00:00", b" 0:00:00", b"00:00:0\xff"] {
            assert_eq!(clock8(bad), None);
        }
    }
}
