// What the SQL Writer needs in a Cosmos DB account: two containers beside the documents, and a right to the data of one
// database. The owner of an existing account runs it, with the principal that main.bicep printed:
//   az deployment group create -g GROUP -f deploy/azure/cosmos.bicep -p account=NAME database=NAME principals='["ID"]'
// Documents, their container and throughput stay as they are. Of our two containers, one that is there already gets the
// time to live and the indexing of a new one. The assignments that it prints are what takes the right back.

@description('Name of the account.')
param account string
@description('Database that has the container of the documents.')
param database string
@description('Container of the change feed\'s leases: LEASE_CONTAINER of the app.')
param leaseContainer string = 'sqlwriter-leases'
@description('Object ids of those who may read and write the data of the database.')
param principals array

@description('Make the database and the container of the documents too: only in an account of our own.')
param createDatabase bool = false
@description('Container of the documents, where it is made. Azure refuses an empty name also where it is not made.')
param container string = database
@description('Partition key of that container, one to three paths.')
param partitionKeyPaths array = []

// An environment has its own leases by their prefix, and its own control document by its id: all share two containers.
// The second has no parameter, because the app knows it by this name alone.
// A time to live of -1 is on, without an end: single items then have theirs.
var own = [leaseContainer, 'sqlwriter-control']
// Cosmos DB Built-in Data Contributor, at the database: the SDKs read its properties too, so that a right at its
// containers is too little.
var dataContributor = '00000000-0000-0000-0000-000000000002'

resource cosmos 'Microsoft.DocumentDB/databaseAccounts@2024-11-15' existing = {
  name: account
}

resource made 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases@2024-11-15' = if (createDatabase) {
  parent: cosmos
  name: database
  properties: { resource: { id: database } }
}

resource documents 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers@2024-11-15' = if (createDatabase) {
  name: '${account}/${database}/${container}'
  properties: {
    resource: {
      id: container
      partitionKey: {
        paths: partitionKeyPaths
        kind: length(partitionKeyPaths) > 1 ? 'MultiHash' : 'Hash'
        version: 2
      }
    }
  }
  dependsOn: [made]
}

resource containers 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers@2024-11-15' = [for name in own: {
  name: '${account}/${database}/${name}'
  properties: {
    resource: {
      id: name
      defaultTtl: -1
      partitionKey: { paths: ['/id'], kind: 'Hash', version: 2 }
    }
  }
  dependsOn: [made]
}]

resource may 'Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments@2024-11-15' = [for principal in principals: {
  parent: cosmos
  name: guid(cosmos.id, database, principal, dataContributor)
  properties: {
    principalId: principal
    roleDefinitionId: '${cosmos.id}/sqlRoleDefinitions/${dataContributor}'
    scope: '${cosmos.id}/dbs/${database}'
  }
  dependsOn: [containers]
}]

output assignments array = [for (principal, i) in principals: may[i].id]
