// recalled_jobs.csv as compiled into the program (cmake/embed.cmake).
#pragma once

#include <string_view>

namespace rehearse::cli::recalled_files {

extern const std::string_view recalled_jobs_csv;

}  // namespace rehearse::cli::recalled_files
