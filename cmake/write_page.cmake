# Run with cmake -P by embed_page.cmake: OUTPUT gets the bytes of INPUT as a C++ literal. Hexadecimal bytes need no quoting.

file(READ "${INPUT}" hex HEX)
string(REGEX REPLACE "(................................................................)" "\\1\"\n\"" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" hex "${hex}")
file(WRITE "${OUTPUT}" "#include \"preview/preview_page.hpp\"\n\nnamespace mailroom::preview {\n\nstd::string_view preview_page() {\n"
     "  static constexpr std::string_view page =\n\"${hex}\";\n  return page;\n}\n\n}  // namespace mailroom::preview\n")
