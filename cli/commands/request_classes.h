// Priorities and deadlines of the requests that a server got.
#pragma once

#include "cli/commands/served_load.h"
#include "cli/output/document.h"

namespace rehearse::cli {

/// The requests of each priority and the deadlines that were met, if the load has several priorities or a
/// deadline.
void add_classes(Document& d, const ServedLoad& load);

}  // namespace rehearse::cli
