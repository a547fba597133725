// Lists of fields as tables: a column per label.
#pragma once

#include <string>
#include <string_view>

#include "cli/output/table.h"
#include "cli/output/value.h"

namespace rehearse::cli {

/// The reader of a table. Tables for programs have all columns, plain numbers with their unit in
/// the heading, and the ends of intervals in columns of their own. Folded tables of a comment are
/// the same, with names escaped as Markdown. A screen groups digits, and shows the ends of
/// intervals if there is room; a comment is like a screen, with names escaped as Markdown. A page is
/// like a screen, with columns of its own.
enum class For { kPrograms, kFolded, kScreen, kComment, kPage };

/// `path` and `blank` as in Document::rows and blank_row.
Table rows_of(const Value& content, std::string_view path, For whom, const Value& blank = {});

/// The same for the page, at most `most` rows: {"columns": [{"name", "look", "right"}],
/// "rows": [[…]], "more": the number of rows that are left out}. A cell is as page_quantity() or, if
/// it is no number, its text alone.
Value page_rows(const Value& content, std::string_view path, std::size_t most);
/// A quantity on the page: {"text", "value", "low", "high", "unit", "range": the interval in words}.
Value page_quantity(const Quantity& quantity, std::string text);

/// A value by itself, for people: "1,536", "1.94 s (1.86 – 2.03 s, recorded)", "a, b".
std::string words_of(const Value& value);

}  // namespace rehearse::cli
