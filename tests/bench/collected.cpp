#include "bench/collected.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <stdexcept>

namespace mailroom::bench {
namespace {

/// Counts newlines and commas in the whole file, which is read in pieces.
std::pair<std::int64_t, std::int64_t> count_lines_and_commas(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<char> piece(1 << 20);
  std::int64_t lines = 0;
  std::int64_t commas = 0;
  while (file) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    const auto end = piece.begin() + file.gcount();
    lines += std::count(piece.begin(), end, '\n');
    commas += std::count(piece.begin(), end, ',');
  }
  return {lines, commas};
}

}  // namespace

void read_line(std::string_view line, const std::function<void(const CollectedToken&)>& each) {
  std::array<std::string_view, 5> values;
  while (!line.empty()) {
    for (auto& value : values) {
      if (line.empty()) throw std::runtime_error("a line does not consist of groups of five values");
      const auto comma = std::min(line.find(','), line.size());
      value = line.substr(0, comma);
      line.remove_prefix(std::min(comma + 1, line.size()));
    }
    each({values[0], values[1], values[2], values[3], values[4]});
  }
}

std::int64_t count_lines(const std::string& file) {
  return count_lines_and_commas(file).first;
}

void require_tokens(const std::vector<std::string>& files, std::int64_t expected) {
  std::int64_t values = 0;
  for (const auto& file : files) {
    const auto [lines, commas] = count_lines_and_commas(file);
    values += lines + commas;
  }
  if (values != 5 * expected) {
    throw std::runtime_error(std::to_string(expected) + " tokens were expected, and the output holds " +
                             std::to_string(values) + " values, five a token");
  }
}

}  // namespace mailroom::bench
