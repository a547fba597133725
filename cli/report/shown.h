// What a document shows to people, as blocks: the page of a command without a layout of its own is
// drawn from them.
#pragma once

#include "cli/output/document.h"

namespace rehearse::cli {

/// A list of blocks, in the order of the document. Each has a "kind" and a "title", which may be empty:
///   line    "text"
///   fields  "fields": [{"label", …}], a quantity as page_quantity(), anything else as "text" alone
///   bars    "parts": the same with a "key": times that add up to a whole
///   list    "items": texts
///   table   as page_rows()
Json shown_of(const Document& document);

}  // namespace rehearse::cli
