// What is on record of a person, as message export writes it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "db/connection.hpp"

namespace mailroom::cmd {

struct PersonExport {
  std::string json{};                                 ///< the file
  std::map<std::string_view, std::int64_t> counts{};  ///< of the records of each part that has some
};

PersonExport export_person(db::Connection& connection, const std::string& address);

}  // namespace mailroom::cmd
