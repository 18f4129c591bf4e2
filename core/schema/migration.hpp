// The migrations and the functions, which the build embeds by cmake/write_migrations.cmake.
#pragma once

#include <string>
#include <vector>

namespace mailroom::schema {

/// One version of the schema: the files migrations/N_name.up.sql and N_name.down.sql. Or the set of
/// functions, which has no version of its own: `version` is then the newest, for which it is made.
struct Migration {
  int version;
  std::string name;
  std::string up;
  std::string down;
  std::string checksum{};  ///< of the set of functions; empty for a version

  bool is_function_set() const { return !checksum.empty(); }
  /// `7_queue`; `functions`
  std::string title() const { return is_function_set() ? name : std::to_string(version) + "_" + name; }
};

/// The name of the version that creates the tables of the queue: from then on claims and operations are on
/// record.
constexpr const char* queue_migration = "queue";

/// All migrations in this binary, by version, from 0 without gaps.
const std::vector<Migration>& embedded_migrations();

/// A file of migrations/functions.
struct FunctionFile {
  std::string name;  ///< `claim.sql`
  std::string text;
};

/// The files of the functions and what is run around them.
struct FunctionFiles {
  std::vector<FunctionFile> files;  ///< by name
  std::string begin;
  std::string end;
  std::string down;
};

const FunctionFiles& embedded_function_files();

}  // namespace mailroom::schema
