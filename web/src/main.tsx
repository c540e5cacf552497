// SPDX-License-Identifier: Apache-2.0
import { render } from "preact";
import { App } from "./app";
import "uplot/dist/uPlot.min.css";
import "./styles/base.css";
import "./styles/hosts.css";
import "./styles/incidents.css";
import "./styles/profile.css";
import "./styles/answer.css";
import "./styles/picker.css";
import "./styles/compare.css";
import "./styles/sign-in.css";
import "./styles/source.css";
import "./styles/strips.css";
import "./styles/timeline.css";
import "./styles/usage.css";
import "./styles/forced-colours.css";
import "./styles/print.css";

render(<App />, document.getElementById("app")!);
