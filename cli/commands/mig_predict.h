// What timed steps say of every slice of a GPU (cli/config/timed_slices.h), for people and
// programs.
#pragma once

#include <string>

#include "cli/config/timed_slices.h"
#include "cli/output/json.h"
#include "cli/output/table.h"

namespace rehearse::cli {

std::string slices_text(const MigAnswer& answer);
Json slices_json(const MigAnswer& answer);
Table slices_table(const MigAnswer& answer);

}  // namespace rehearse::cli
