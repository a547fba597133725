// What timed steps say of every slice of a GPU (cli/config/timed_slices.h), for people and
// programs.
#pragma once

#include "cli/config/timed_slices.h"
#include "cli/output/document.h"

namespace rehearse::cli {

Document slices_document(const MigAnswer& answer);

}  // namespace rehearse::cli
