// Pieces of what `upcall bench` shows and keeps.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "bench.h"

namespace upcall::tool {

// With three digits or more.
std::string figure(double value);
// "median (min-max)", or why there is none.
std::string spread(const Runs& runs);
nlohmann::ordered_json runs_json(const Runs& runs);
// The head of a report: what was measured where and when.
nlohmann::ordered_json machine_json(const std::string& format, const std::string& date,
                                    const std::string& load, int runs);
void print_machine(const std::string& date, const std::string& load);

}  // namespace upcall::tool
