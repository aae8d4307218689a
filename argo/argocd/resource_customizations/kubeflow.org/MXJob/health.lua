local hs = {}

-- Healthy once it has Succeeded, as Argo CD has it for a Job; what it is doing before that is no failure.
local states = {
  Created = "Progressing",
  Running = "Progressing",
  Restarting = "Progressing",
  Suspended = "Suspended",
  Succeeded = "Healthy",
  Failed = "Degraded"
}

-- What keeps a job from running, or is wrong while it runs: its message is worth more than the state's.
local obstacles = {
  Admitted = "False",
  PodsScheduled = "False",
  PodsStarted = "False",
  ReplicaFailure = "True",
  PodsTerminating = "True",
  ReplicasChangeIgnored = "True",
  PriorityClassIgnored = "True",
  FewerWorkers = "True",
  ReconcileError = "True",
  ServersExited = "True",
  Stalled = "True",
  SchedulerStillRunning = "True",
  ExitCodeUnknown = "True"
}

-- A job that training-operator ended has no state, but the same conditions, the latest of which holds.
local state, said, obstacle, queue
if obj.status ~= nil then
  local given = obj.status.state
  if given ~= "" then
    state = given
  end
  for _, condition in ipairs(obj.status.conditions or {}) do
    if states[condition.type] ~= nil and condition.status == "True" then
      if given == nil or given == "" or given == condition.type then
        state, said = condition.type, condition.message
      end
    elseif obstacles[condition.type] == condition.status then
      obstacle = condition.message
      if condition.type == "Admitted" then
        queue = condition.message
      end
    end
  end
end

hs.status = states[state] or "Progressing"
if hs.status == "Suspended" and not ((obj.spec or {}).runPolicy or {}).suspend then
  obstacle = queue
elseif hs.status ~= "Progressing" then
  obstacle = nil
end
hs.message = obstacle or said or state or "Waiting for the controller"
return hs
