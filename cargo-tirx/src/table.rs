//! Tables in the terminal: the first column and texts to the left, the others to the right.

/// A table that is filled row by row.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these titles.
    pub(crate) fn new<'a>(titles: impl IntoIterator<Item = &'a str>) -> Table {
        Table {
            rows: vec![titles.into_iter().map(str::to_string).collect()],
        }
    }

    /// One more row.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The lines. A column whose cells are numbers stands to the right.
    pub(crate) fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let cells = |at: usize| self.rows.iter().filter_map(move |row| row.get(at));
        let widths: Vec<usize> = (0..columns)
            .map(|at| cells(at).map(|cell| cell.chars().count()).max().unwrap_or(0))
            .collect();
        let starts_with_digit = |cell: &String| cell.starts_with(|c: char| c.is_ascii_digit() || c == '?');
        let right: Vec<bool> = (0..columns)
            .map(|at| at > 0 && cells(at).skip(1).all(starts_with_digit))
            .collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (at, cell) in row.iter().enumerate() {
                let width = widths[at];
                line += &match right[at] {
                    true => format!("{cell:>width$}  "),
                    false => format!("{cell:<width$}  "),
                };
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn numbers_stand_to_the_right() {
        let mut table = Table::new(["kernel", "registers", "by"]);
        table.row(vec!["add".into(), "8".into(), "threads".into()]);
        table.row(vec!["scale".into(), "16 -> 128".into(), "blocks".into()]);
        assert_eq!(
            table.text(),
            "kernel  registers  by\nadd             8  threads\nscale   16 -> 128  blocks\n"
        );
    }
}
