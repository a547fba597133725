// Lists of fields as tables: a column per label.
#pragma once

#include <string>
#include <string_view>

#include "cli/output/table.h"
#include "cli/output/value.h"

namespace rehearse::cli {

/// Who a table is for. Programs have all columns, plain numbers with their unit in the heading, and
/// the ends of intervals in columns of their own; so have tables that are folded in a comment, in
/// which names make no markup. A screen has digits in groups, and ends of intervals where there is
/// room; a comment, as a screen, without markup.
enum class For { kPrograms, kFolded, kScreen, kComment };

/// `path` and `blank` as in Document::rows and blank_row.
Table rows_of(const Value& content, std::string_view path, For whom, const Value& blank = {});

/// A value by itself, for people: "1,536", "1.94 s (1.86 – 2.03 s, recorded)", "a, b".
std::string words_of(const Value& value);

}  // namespace rehearse::cli
