// The files of cost/catalog as compiled into the program (cmake/embed.cmake).
#pragma once

#include <string_view>

namespace rehearse::cost::catalog_files {

extern const std::string_view carbon_countries_csv;
extern const std::string_view carbon_regions_csv;
extern const std::string_view function_prices_csv;
extern const std::string_view instance_prices_csv;
extern const std::string_view power_coefficients_csv;
extern const std::string_view pue_csv;
extern const std::string_view storage_prices_csv;

}  // namespace rehearse::cost::catalog_files
