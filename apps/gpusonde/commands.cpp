// SPDX-License-Identifier: Apache-2.0
#include "command.h"

#include <array>
#include <span>

namespace gpusonde::app {

void AddAdmission(CLI::App& app, int& exit_status);
void AddAgent(CLI::App& app, int& exit_status);
void AddAnalyze(CLI::App& app, int& exit_status);
void AddCompare(CLI::App& app, int& exit_status);
void AddDiagnose(CLI::App& app, int& exit_status);
void AddDoctor(CLI::App& app, int& exit_status);
void AddExport(CLI::App& app, int& exit_status);
void AddFiles(CLI::App& app, int& exit_status);
void AddFleet(CLI::App& app, int& exit_status);
void AddImport(CLI::App& app, int& exit_status);
void AddLines(CLI::App& app, int& exit_status);
void AddMcp(CLI::App& app, int& exit_status);
void AddQuery(CLI::App& app, int& exit_status);
void AddRecord(CLI::App& app, int& exit_status);
void AddServe(CLI::App& app, int& exit_status);
void AddToken(CLI::App& app, int& exit_status);
void AddTop(CLI::App& app, int& exit_status);
void AddUp(CLI::App& app, int& exit_status);
void AddUsage(CLI::App& app, int& exit_status);
void AddView(CLI::App& app, int& exit_status);

std::span<const Command> AllCommands() {
  static constexpr std::array kCommands = {
      Command{"admission", AddAdmission}, Command{"agent", AddAgent},       Command{"analyze", AddAnalyze},
      Command{"compare", AddCompare},     Command{"diagnose", AddDiagnose}, Command{"doctor", AddDoctor},
      Command{"export", AddExport},       Command{"files", AddFiles},       Command{"fleet", AddFleet},
      Command{"import", AddImport},       Command{"lines", AddLines},       Command{"mcp", AddMcp},
      Command{"query", AddQuery},         Command{"record", AddRecord},     Command{"serve", AddServe},
      Command{"token", AddToken},         Command{"top", AddTop},           Command{"up", AddUp},
      Command{"usage", AddUsage},         Command{"view", AddView},
  };
  return kCommands;
}

}  // namespace gpusonde::app
