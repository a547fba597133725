// The document of `rehearse mig predict`: predictions for every slice of a GPU from timed steps
// (cli/config/timed_slices.h).
#pragma once

#include "cli/config/timed_slices.h"
#include "cli/output/document.h"

namespace rehearse::cli {

Document slices_document(const MigAnswer& answer);

}  // namespace rehearse::cli
